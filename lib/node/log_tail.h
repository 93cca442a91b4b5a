// The last lines of a stream of output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleet {

class LogTail {
 public:
  explicit LogTail(size_t bytes = 16384) : limit_(bytes) {}
  void add(std::string_view output);
  // The last `lines` lines that are still held, without a trailing newline. What a carriage return
  // has overwritten (progress bars) is left out.
  std::string last(size_t lines) const;

 private:
  size_t limit_;
  bool cut_ = false;  // the first line held is not whole
  std::string held_;
};

}  // namespace fleet
