#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace fleet::text {

void append_utf8(char32_t c, std::string& text) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

size_t previous_character(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

size_t valid_character(std::string_view text, size_t at, size_t* bad) {
  const auto byte = [&](size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const unsigned lead = byte(0);
  *bad = 1;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what is above U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      *bad = i;
      return 0;
    }
  }
  return length;
}

bool is_valid_utf8(std::string_view text) {
  size_t at = 0, bad;
  while (at < text.size()) {
    // Eight bytes of ASCII at a time.
    while (at + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if (word & 0x8080808080808080u) break;
      at += 8;
    }
    if (at == text.size()) break;
    const size_t length = valid_character(text, at, &bad);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t bad;
    const size_t length = valid_character(text, at, &bad);
    if (length == 0) {
      valid += "\xEF\xBF\xBD";
      at += bad;
    } else {
      valid.append(text, at, length);
      at += length;
    }
  }
  return valid;
}

std::u32string code_points_of(std::string_view text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) result.push_back(code_point_at(text, at, &at));
  return result;
}

}  // namespace fleet::text
