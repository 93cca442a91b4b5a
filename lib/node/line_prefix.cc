#include "node/line_prefix.h"

#include <utility>

namespace fleet {

constexpr size_t kLongestLine = 64 << 10;

std::string LinePrefix::pass(std::string_view output) {
  std::string lines;
  while (!output.empty()) {
    const size_t end = output.find_first_of("\r\n");
    const size_t size = end == std::string_view::npos ? output.size() : end + 1;
    held_ += output.substr(0, size);
    output.remove_prefix(size);
    if (end == std::string_view::npos && held_.size() <= kLongestLine) break;
    if (held_ == "\n" && !lines.empty() && lines.back() == '\r') {  // "\r\n" is one end
      lines += std::exchange(held_, {});
      continue;
    }
    lines += prefix_ + std::exchange(held_, {});
    if (end == std::string_view::npos) lines += '\n';
  }
  return lines;
}

std::string LinePrefix::rest() {
  return held_.empty() ? std::string() : prefix_ + std::exchange(held_, {}) + "\n";
}

}  // namespace fleet
