// UTF-8 and code points.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleet::text {

void append_utf8(char32_t code_point, std::string& text);

// The code point at `at`, and *next after it. The text must be valid.
inline char32_t code_point_at(std::string_view text, size_t at, size_t* next) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) {
    *next = at + 1;
    return lead;
  }
  if (lead < 0xE0) {
    *next = at + 2;
    return (lead & 0x1F) << 6 | (byte(1) & 0x3F);
  }
  if (lead < 0xF0) {
    *next = at + 3;
    return (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  }
  *next = at + 4;
  return (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

// The start of the character that ends before `at` > 0. The text must be valid.
size_t previous_character(std::string_view text, size_t at);

// Bytes of the valid character that begins at `at`; 0 if none does. *bad: then, how many bytes one
// U+FFFD stands for (Unicode's "maximal subparts", as Python and Rust replace them).
size_t valid_character(std::string_view text, size_t at, size_t* bad);

bool is_valid_utf8(std::string_view text);
// With U+FFFD for bytes that are not valid.
std::string valid_utf8(std::string_view text);

std::u32string code_points_of(std::string_view valid_text);

}  // namespace fleet::text
