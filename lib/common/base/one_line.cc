#include "base/one_line.h"

#include <algorithm>

#include "base/terminal_parser.h"

namespace fleet {
namespace {

// Bytes of the UTF-8 character at the front of `text`; 0 if it must not reach a terminal or is
// invalid.
size_t shown_character(std::string_view text) {
  char32_t code = 0;
  const size_t size = character_size(text, &code);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ? 0 : size;
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
