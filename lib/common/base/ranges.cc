#include "base/ranges.h"

#include "base/text.h"

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

bool parse_range(std::string_view text, long long* first, long long* last) {
  const size_t dash = text.find('-', 1);
  if (!parse_int(text.substr(0, dash), first)) return false;
  *last = *first;
  return (dash == std::string_view::npos || parse_int(text.substr(dash + 1), last)) &&
         *first <= *last;
}

}  // namespace fleet
