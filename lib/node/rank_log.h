// A rank's output: from its pipe into its log file, and the console's copy.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/file.h"
#include "node/bar_filter.h"
#include "node/console.h"
#include "node/line_prefix.h"
#include "node/log_tail.h"

namespace fleet {

class RankLog {
 public:
  // Appends to `path` what comes through `pipe` (non-blocking). `console`: nullptr, or where it
  // goes as well; the pipe is then not read while the console is full, as if the rank wrote there
  // itself. draws_bar: the rank draws a progress bar on that console, which the file does not want.
  // prefix: of each line on the console, which then gets whole lines only; empty: as it comes.
  RankLog(boost::asio::io_context& loop, UniqueFd pipe, const std::string& path, Console* console,
          const std::string& prefix, bool draws_bar);
  // Reads what the pipe holds now: its rank has ended, while others may keep the pipe open.
  void drain();
  // To be called when the console has room again.
  void resume();
  int64_t bytes() const { return bytes_; }  // read so far
  std::string last_lines(size_t lines) const { return tail_.last(lines); }

 private:
  void wait();
  // False where the pipe is empty or closed.
  bool read_once();
  void append(std::string_view output);
  void write_file(std::string_view output);

  boost::asio::posix::stream_descriptor pipe_;
  UniqueFd file_;
  std::string path_;
  Console* console_;
  LogTail tail_;
  BarFilter filter_;
  std::optional<LinePrefix> lines_;
  bool draws_bar_;
  int64_t bytes_ = 0;
  bool waits_ = false, closed_ = false, complained_ = false;
};

}  // namespace fleet
