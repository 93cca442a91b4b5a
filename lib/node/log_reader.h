// Reads a rank's log while it is written, and across its being closed (log_rotation.h).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace fleet {

class LogReader {
 public:
  // From the beginning of what is kept, or (`current`) of the log that is written now.
  explicit LogReader(std::string path, bool current = false)
      : path_(std::move(path)), current_(current) {}
  // What has come since the last time, at most `most` bytes of it; "" where that is nothing, or
  // there is no such log (yet). Where a piece was removed before it could be read, goes on with the
  // next. kIo where it cannot be read.
  std::string next(size_t most);
  // All of that. False where there is no such log (yet).
  bool read(const std::function<void(std::string_view)>& take);

 private:
  bool open_first();
  bool open_next();  // false where the open file is the one that is written now
  static UniqueFd open(const std::string& path);  // none where it is not there

  std::string path_;
  bool current_;
  UniqueFd file_;
  int last_ = 0;  // number of the newest piece that is behind us, or open
};

}  // namespace fleet
