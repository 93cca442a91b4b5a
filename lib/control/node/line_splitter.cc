#include "node/line_splitter.h"

#include <algorithm>
#include <utility>

#include "base/terminal_text.h"

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

namespace {

constexpr std::string_view kEraseLine = "\033[K";
constexpr size_t kLongestBar = 4096;  // bytes; longer output is not a bar

constexpr size_t kEndOfLine = 1000;  // last bytes of a line too long to show

}  // namespace

std::string BarFilter::pass(std::string_view output) {
  std::string passed;
  held_ += output;
  for (;;) {
    const size_t start = held_.find('\r');
    passed += held_.substr(0, start);
    if (start == std::string::npos) {
      held_.clear();
      return passed;
    }
    held_.erase(0, start);
    const size_t line_end = held_.find('\n');
    const size_t erase = held_.substr(0, line_end).find(kEraseLine);
    if (erase != std::string::npos) {
      held_.erase(0, erase + kEraseLine.size());
    } else if (line_end != std::string::npos || held_.size() > kLongestBar) {
      passed += '\r';
      held_.erase(0, 1);
    } else {
      return passed;
    }
  }
}

void LogTail::add(std::string_view output) {
  if (output.size() > 2 * limit_) {
    held_.clear();
    output.remove_prefix(output.size() - limit_);
    cut_ = true;
  }
  held_.append(output);
  // Trimmed only at twice the limit, so that a long stream costs little.
  if (held_.size() <= 2 * limit_) return;
  held_.erase(0, held_.size() - limit_);
  cut_ = true;
}

std::string LogTail::shown(bool colors) const {
  std::string_view text = held_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const size_t first = text.find('\n'), redrawn = text.rfind('\r');
  std::string cut;
  if (cut_ && first != text.npos) {
    text.remove_prefix(first + 1);
  } else if (cut_ && redrawn != text.npos) {
    text.remove_prefix(redrawn + 1);
  } else if (cut_) {  // a single line longer than the buffer: show its end
    text.remove_prefix(text.size() - std::min(text.size(), kEndOfLine));
    cut = "...";
  }
  std::string shown = cut + resolve_output(text, colors);
  while (shown.ends_with('\n')) shown.pop_back();  // lines of control sequences only
  return shown;
}

std::string_view last_lines(std::string_view text, size_t lines) {
  size_t begin = text.size() + 1;  // past the newline before the line
  for (; lines > 0 && begin > 0; --lines) begin = begin < 2 ? 0 : text.rfind('\n', begin - 2) + 1;
  return text.substr(std::min(begin, text.size()));
}

}  // namespace fleet
