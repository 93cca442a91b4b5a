// All output of this node's ranks: their logs and the console.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/console.h"
#include "node/console_lines.h"
#include "node/line_copies.h"
#include "node/log_file.h"
#include "node/rank_log.h"
#include "rendezvous/control_messages.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread.
class JobLogs {
 public:
  explicit JobLogs(boost::asio::io_context& loop);
  // Call it before the ranks start, and again before each restart: it finishes the logs of the
  // earlier start, which are set aside when the rank's new log is opened.
  void begin(const wire::SpawnRanks& spawn);
  // Opens a rank's log, which lives until the next begin().
  RankLog* open(const wire::RankCommand& command, RankOutput pipes);
  // Call it when all ranks have ended: writes the remaining output. Calls back, maybe at once, when
  // the console has accepted it, or has accepted nothing for a while. Once per begin().
  void finish(std::function<void()> on_done);

 private:
  bool idle() const { return output_.idle() && errors_.idle(); }
  void wait_for_consoles();
  void done();

  boost::asio::io_context& loop_;
  Console output_, errors_;
  ConsoleLines output_lines_, error_lines_;
  LineCopies output_copies_, error_copies_;
  boost::asio::steady_timer limit_;
  wire::LogSettings settings_;
  std::vector<char> buffer_;
  std::optional<LogFolder> folder_;
  std::set<std::string> opened_;  // paths, in this run
  std::vector<std::unique_ptr<RankLog>> logs_;
  std::function<void()> on_done_;
};

}  // namespace fleet
