// Reads the characters of a regular expression. Internal to text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace fleet::text {

// Not thread-safe.
class PatternReader {
 public:
  static constexpr char32_t kEnd = 0xFFFFFFFF;

  // where: names the place of the expression in errors; must outlive it.
  PatternReader(std::string_view expression, const std::string& where)
      : text_(code_points_of(expression)), expression_(expression), where_(where) {}

  bool done() const { return at_ >= text_.size(); }
  // The next character, or one further ahead, without reading it; kEnd at the end.
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : kEnd;
  }
  void skip() { ++at_; }
  char32_t next() {
    const char32_t c = peek();
    skip();
    return c;
  }
  // Reads these characters if they are next. `wanted`: ASCII.
  bool take(char32_t wanted);
  bool take(std::string_view wanted);
  // A count; nullopt if there is no digit. kUnsupported above 1000.
  std::optional<int> number();
  // The rest of \x41, \x{1F600} or \u0041. digits: without braces.
  char32_t hex_code(int digits);

  // kUnsupported: "the regular expression '...' uses WHAT, which is not supported".
  [[noreturn]] void refuse(const std::string& what) const;
  // kUsage: "the regular expression '...' has WHAT".
  [[noreturn]] void damaged(const std::string& what) const;

 private:
  std::u32string text_;
  std::string expression_;
  const std::string& where_;
  size_t at_ = 0;
};

}  // namespace fleet::text
