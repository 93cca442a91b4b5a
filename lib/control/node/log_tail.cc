#include "node/log_tail.h"

#include <algorithm>

#include "base/terminal_text.h"

namespace fleet {
namespace {

constexpr size_t kEndOfLine = 1000;  // of a line too long to show

}  // namespace

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
