// A rank's output: from its pipe into its log file, and the console's copy.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>

#include "base/file.h"
#include "node/console.h"
#include "node/log_tail.h"

namespace fleet {

class RankLog {
 public:
  // Appends to `path` what comes through `pipe` (non-blocking). `console`: nullptr, or where it
  // goes as well; the pipe is then not read while the console is full, as if the rank wrote there
  // itself.
  RankLog(boost::asio::io_context& loop, UniqueFd pipe, const std::string& path, Console* console);
  // Reads what the pipe holds now: its rank has ended, while others may keep the pipe open.
  void drain();
  // To be called when the console has room again.
  void resume();
  std::string last_lines(size_t lines) const { return tail_.last(lines); }

 private:
  void wait();
  // False where the pipe is empty or closed.
  bool read_once();
  void append(const char* data, size_t size);

  boost::asio::posix::stream_descriptor pipe_;
  UniqueFd file_;
  std::string path_;
  Console* console_;
  LogTail tail_;
  bool waits_ = false, closed_ = false, complained_ = false;
};

}  // namespace fleet
