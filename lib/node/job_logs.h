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
#include "node/line_copies.h"
#include "node/log_file.h"
#include "node/rank_log.h"
#include "node/shown_lines.h"
#include "node/wire.h"

namespace fleet {

// Not thread safe: everything happens in the loop's thread.
class JobLogs {
 public:
  explicit JobLogs(boost::asio::io_context& loop);
  // Before the ranks are started; again where they are started again: the logs of their earlier
  // start are finished, and set aside when the rank's new log is opened.
  void begin(const SpawnRanks& spawn);
  // A rank's log, which lives until the next begin().
  RankLog* open(const RankCommand& command, RankOutput pipes);
  // Everything has ended: writes what is left. Calls back, maybe at once, when the console has
  // taken it, or has taken nothing for a while. Once a begin().
  void finish(std::function<void()> on_done);

 private:
  bool idle() const { return output_.idle() && errors_.idle(); }
  void wait_for_consoles();
  void done();

  boost::asio::io_context& loop_;
  Console output_, errors_;
  ShownLines output_lines_, error_lines_;
  LineCopies output_copies_, error_copies_;
  boost::asio::steady_timer limit_;
  LogSettings settings_;
  std::vector<char> buffer_;
  std::optional<LogFolder> folder_;
  std::set<std::string> opened_;  // paths, in this run
  std::vector<std::unique_ptr<RankLog>> logs_;
  std::function<void()> on_done_;
};

}  // namespace fleet
