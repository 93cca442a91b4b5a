// Reads a rank's log while it is written, across rotations (log_file.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "node/log_file.h"
#include "transport/control_messages.h"

namespace fleet {

using wire::LogPosition;

// The position of the next byte to be written.
LogPosition end_of_log(const std::string& path);
// The last `most` bytes between the two, or all of it; returns where they begin.
LogPosition tail_of_log(const std::string& path, const LogPosition& begin, const LogPosition& end,
                        int64_t most);

class LogReader {
 public:
  // Reads from the beginning of the kept log or, if `current`, of the current file.
  explicit LogReader(std::string path, bool current = false)
      : path_(std::move(path)), current_(current) {}
  // Skips everything before this position. If its file is gone, reads all that is kept.
  void begin_at(const LogPosition& mark) { begin_ = mark; }
  // Stops at this position; a mark of an empty log (file 0) sets no limit.
  void end_at(const LogPosition& mark) { end_ = mark; }
  // New output since the last call, at most `most` bytes; "" if none, or no such log
  // (yet). If a piece was removed before it could be read, continues with the next. Throws kIo if
  // the log cannot be read.
  std::string next(size_t most);
  // Reads all of that. Returns false if there is no such log (yet).
  bool read(const std::function<void(std::string_view)>& take);

 private:
  std::vector<LogPiece> list(UniqueFd* written) const;
  bool open_first();
  bool open_marked(UniqueFd* written, const std::vector<LogPiece>& pieces);
  void use(UniqueFd file);
  size_t wanted(size_t most) const;
  bool open_next();                               // false if the open file is the current one
  static UniqueFd open(const std::string& path);  // empty if the file does not exist

  std::string path_;
  bool current_;
  UniqueFd file_;
  LogPosition begin_, end_;
  uint64_t inode_ = 0;  // inode of the open file
  int last_ = 0;        // number of the newest piece read or open
};

}  // namespace fleet
