#include "text/pattern_reader.h"

#include "base/error.h"
#include "text/code_point_set.h"

namespace fleet::text {
namespace {

constexpr int kMostRepeats = 1000;

// -1: it is none.
int hex_digit(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A' + 10);
  return -1;
}

}  // namespace

bool PatternReader::take(char32_t wanted) {
  if (peek() != wanted) return false;
  skip();
  return true;
}

bool PatternReader::take(std::string_view wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (peek(i) != static_cast<unsigned char>(wanted[i])) return false;
  }
  at_ += wanted.size();
  return true;
}

std::optional<int> PatternReader::number() {
  if (peek() < '0' || peek() > '9') return std::nullopt;
  int value = 0;
  while (peek() >= '0' && peek() <= '9') {
    value = value * 10 + static_cast<int>(next() - '0');
    if (value > kMostRepeats) refuse("a count above 1000");
  }
  return value;
}

char32_t PatternReader::hex_code(int digits) {
  const bool braces = take('{');
  if (braces) digits = 8;
  char32_t value = 0;
  int read = 0;
  for (; read < digits; ++read, skip()) {
    const int digit = hex_digit(peek());
    if (digit < 0) break;
    value = value * 16 + static_cast<char32_t>(digit);
    if (value > kLastCodePoint) damaged("a code point above 10FFFF");
  }
  if (read == 0 || (!braces && read < digits) || (braces && !take('}'))) {
    damaged("an incomplete hexadecimal escape");
  }
  return value;
}

void PatternReader::refuse(const std::string& what) const {
  throw Error(
      ErrorCode::kUnsupported,
      "the regular expression '" + expression_ + "' uses " + what + ", which is not supported",
      where_);
}

void PatternReader::damaged(const std::string& what) const {
  throw Error(ErrorCode::kUsage, "the regular expression '" + expression_ + "' has " + what,
              where_);
}

}  // namespace fleet::text
