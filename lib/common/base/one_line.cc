#include "base/one_line.h"

#include <algorithm>

namespace fleet {
namespace {

// Bytes of the UTF-8 character at the front of `text`; 0 if it must not reach a terminal or is
// invalid.
size_t shown_character(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t size = first >= 0xf0 && first < 0xf5   ? 4
                      : first >= 0xe0 && first < 0xf0 ? 3
                      : first >= 0xc2 && first < 0xe0 ? 2
                                                      : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return 0;
  }
  return first == 0xc2 && byte(1) < 0xa0 ? 0 : size;  // C1
}

}  // namespace

std::string one_line(std::string_view text, size_t most) {
  std::string line;
  size_t characters = 0, cut = 0;
  while (!text.empty()) {
    if (characters + 3 == most) cut = line.size();
    if (characters == most) return line.substr(0, cut) + "...";
    const size_t size = shown_character(text);
    line += size > 0 ? text.substr(0, size) : std::string_view("?");
    text.remove_prefix(std::max<size_t>(size, 1));
    ++characters;
  }
  return line;
}

}  // namespace fleet
