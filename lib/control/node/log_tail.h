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
  // The complete lines still held, as a terminal would show them (resolve_output()), without
  // trailing newlines.
  std::string shown(bool colors = false) const;

 private:
  size_t limit_;
  bool cut_ = false;  // the first held line is not complete
  std::string held_;
};

// The last `lines` lines of a text without a trailing newline.
std::string_view last_lines(std::string_view text, size_t lines);

}  // namespace fleet
