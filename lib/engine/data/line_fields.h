// Numbers in lines of text, fast: no copies, and no error texts unless something is wrong. Internal
// to data.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/terminal_text.h"

namespace fleet::data {

// The whole text as a number in the range of its type; no blanks and no '+'.
template <typename T>
bool whole_number(std::string_view text, T* number, int base = 10) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

inline bool real_number(std::string_view text, float* number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() &&
         std::isfinite(*number);
}

// "0" and "1", also as numbers with decimals or a sign.
inline bool click_label(std::string_view text, float* label) {
  if (text.size() == 1 && (text[0] == '0' || text[0] == '1')) {
    *label = static_cast<float>(text[0] - '0');
    return true;
  }
  return real_number(text, label) && (*label == 0 || *label == 1);
}

// Cuts a line at blanks and tabs, any number of them.
class BlankFields {
 public:
  explicit BlankFields(std::string_view line) : rest_(line) { skip(); }
  bool next(std::string_view* field) {
    if (rest_.empty()) return false;
    size_t end = 0;
    while (end < rest_.size() && rest_[end] != ' ' && rest_[end] != '\t') ++end;
    *field = rest_.substr(0, end);
    rest_.remove_prefix(end);
    skip();
    return true;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// For the reason that a line is broken.
inline std::string quoted_field(std::string_view field) {
  std::string text = "'";
  text += shown_name(field, 40);
  text += '\'';
  return text;
}

}  // namespace fleet::data
