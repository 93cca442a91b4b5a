#include "base/ranges.h"

namespace fleet {

std::string ranges_text(std::span<const int> sorted) {
  std::string text;
  for (size_t at = 0; at < sorted.size();) {
    const int first = sorted[at];
    int last = first;
    while (++at < sorted.size() && sorted[at] == last + 1) last = sorted[at];
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
  }
  return text;
}

}  // namespace fleet
