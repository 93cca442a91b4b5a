#include "train/stage_names.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace fleet {

std::string with_stages(const std::string& text, int stages) {
  if (stages <= 1) return text;
  constexpr std::string_view kRank = "rank ";
  std::string named;
  size_t begin = 0;
  for (size_t at = text.find(kRank); at != std::string::npos; at = text.find(kRank, begin)) {
    const char* digits = text.data() + at + kRank.size();
    int rank = 0;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), rank);
    const size_t behind = end - text.data();
    named += text.substr(begin, at - begin);
    const std::string whole = text.substr(at, behind - at);
    const bool numbered = error == std::errc() && rank >= 0;
    named += numbered ? "stage " + std::to_string(rank % stages) + " (" + whole + ")" : whole;
    begin = std::max(behind, at + kRank.size());
  }
  return named + text.substr(begin);
}

}  // namespace fleet
