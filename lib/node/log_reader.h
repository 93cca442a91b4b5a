// Reads a rank's log while it is written, and across its being closed (log_rotation.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "node/log_rotation.h"

namespace fleet {

// A place in a rank's log: where a run begins in files that runs append to, or ends.
struct LogMark {
  uint64_t file = 0;  // inode of workerlog.N or of a closed piece; 0: there was none
  int64_t at = 0;     // bytes

  bool operator==(const LogMark&) const = default;
};
// Where the next byte will be written.
LogMark end_of_log(const std::string& path);
// The last `most` bytes between the two, or all of it; as a place to begin.
LogMark tail_of_log(const std::string& path, const LogMark& begin, const LogMark& end,
                    int64_t most);

class LogReader {
 public:
  // From the beginning of what is kept, or (`current`) of the log that is written now.
  explicit LogReader(std::string path, bool current = false)
      : path_(std::move(path)), current_(current) {}
  // Only what is behind this place. If its file is gone, all that is kept.
  void begin_at(const LogMark& mark) { begin_ = mark; }
  // Nothing behind this place; a mark of an empty log (file 0) is no bound.
  void end_at(const LogMark& mark) { end_ = mark; }
  // What has come since the last time, at most `most` bytes of it; "" where that is nothing, or
  // there is no such log (yet). Where a piece was removed before it could be read, goes on with the
  // next. kIo where it cannot be read.
  std::string next(size_t most);
  // All of that. False where there is no such log (yet).
  bool read(const std::function<void(std::string_view)>& take);

 private:
  std::vector<LogPiece> list(UniqueFd* written) const;
  bool open_first();
  bool open_marked(UniqueFd* written, const std::vector<LogPiece>& pieces);
  void use(UniqueFd file);
  size_t wanted(size_t most) const;
  bool open_next();  // false where the open file is the one that is written now
  static UniqueFd open(const std::string& path);  // none where it is not there

  std::string path_;
  bool current_;
  UniqueFd file_;
  LogMark begin_, end_;
  uint64_t inode_ = 0;  // of the open file
  int last_ = 0;        // number of the newest piece that is behind us, or open
};

}  // namespace fleet
