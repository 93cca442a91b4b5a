#include "node/log_tail.h"

#include <span>
#include <vector>

#include "base/text.h"

namespace fleet {
namespace {

constexpr size_t kEndOfLine = 1000;  // of a line that is too long to be shown

}  // namespace

void LogTail::add(std::string_view output) {
  if (output.size() > 2 * limit_) {
    held_.clear();
    output.remove_prefix(output.size() - limit_);
    cut_ = true;
  }
  held_.append(output);
  // Cut down only at twice the limit, so that a long stream costs little.
  if (held_.size() <= 2 * limit_) return;
  held_.erase(0, held_.size() - limit_);
  cut_ = true;
}

std::string LogTail::last(size_t lines) const {
  std::string_view text = held_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (cut_) {
    const size_t first = text.find('\n');
    // A single line that is longer than what is held: its end.
    if (first == text.npos && text.find('\r') == text.npos) {
      return "..." + std::string(text.substr(text.size() - std::min(text.size(), kEndOfLine)));
    }
    if (first != text.npos) text.remove_prefix(first + 1);
  }
  std::vector<std::string> all;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t overwritten = line.rfind('\r');
    if (overwritten != std::string_view::npos) line.remove_prefix(overwritten + 1);
    all.emplace_back(line);
    start = end + 1;
  }
  const size_t count = std::min(lines, all.size());
  return join(std::span<const std::string>(all).last(count), "\n");
}

}  // namespace fleet
