#include "node/line_splitter.h"

#include <algorithm>
#include <utility>

namespace fleet {

void LineSplitter::add(std::string_view output) {
  input_ = output;
  newline_ = kUnknown;
}

// The end of the first line of input_; npos if it has none yet or the next byte will decide.
size_t LineSplitter::line_end() {
  // Searched once per line: a bar has many returns per newline, which would repeat the search.
  if (newline_ == kUnknown) newline_ = input_.find('\n');
  const size_t bar_end = input_.substr(0, newline_).find('\r');
  if (bar_end == std::string_view::npos) {
    return newline_ == std::string_view::npos ? newline_ : newline_ + 1;
  }
  if (bar_end + 1 == newline_) return newline_ + 1;
  return bar_end + 1 == input_.size() ? std::string_view::npos : bar_end + 1;
}

bool LineSplitter::next(std::string_view* line) {
  if (std::exchange(given_, false)) held_.clear();
  if (input_.empty()) return false;
  size_t size = 0;
  if (held_.ends_with('\r')) {
    size = input_.front() == '\n' ? 1 : 0;
    given_ = true;
  } else {
    size = line_end();
    // A line that is too long is returned without an end.
    const bool whole = size != std::string_view::npos;
    const size_t room = kLongest - std::min(kLongest, held_.size());
    given_ = whole || input_.size() > room;
    if (!whole || size > room + 2) size = std::min(input_.size(), std::max<size_t>(room, 1));
  }
  const std::string_view part = input_.substr(0, size);
  input_.remove_prefix(size);
  if (newline_ != kUnknown && newline_ != std::string_view::npos) {
    newline_ = newline_ < size ? kUnknown : newline_ - size;
  }
  if (given_ && held_.empty()) {
    given_ = false;
    *line = part;
    return true;
  }
  held_ += part;
  *line = held_;
  return given_;
}

std::string LineSplitter::rest() {
  if (std::exchange(given_, false)) held_.clear();
  return std::exchange(held_, {});
}

}  // namespace fleet
