// The regular expressions of pre-tokenizers, as an automaton that reads each character once: no
// backtracking, so no text makes it slow.
//
// Known: literals and escapes, ".", classes with ranges, negation and nesting, \s \S \d \D \w \W,
// \p{..} and \P{..} of general categories, groups, (?:..), (?i:..) of ASCII letters, alternation,
// ? * + {m,n} (greedy or lazy), and (?=..) and (?!..) of one character. The first alternative that
// matches counts, as in Perl, Oniguruma and tiktoken. Anything else is refused by its name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/code_point_set.h"

namespace fleet::text {

struct SetPattern {
  CodePointSet set;
  bool run;  // as many characters of the set as there are, not one
};

// Const member functions may be called by several threads at once. Texts must be valid UTF-8.
class SplitPattern {
 public:
  // kUnsupported naming the construct, or that the expression matches the empty text; kUsage for a
  // damaged expression. where: what messages call its place.
  SplitPattern(std::string_view expression, const std::string& where);
  // Matches exactly this text, which must not be empty.
  static SplitPattern literal(std::string_view text, const std::string& where);
  static SplitPattern of_sets(std::span<const SetPattern> alternatives);

  static constexpr size_t kNone = static_cast<size_t>(-1);
  // The end of the match that begins at `from`, or kNone.
  size_t match(std::string_view text, size_t from) const;
  // The first match at or after `from`; its end, or kNone. *begin: where it begins.
  size_t find(std::string_view text, size_t from, size_t* begin) const;

 private:
  friend class PatternAutomaton;
  SplitPattern() = default;
  // One state's answer to a class of characters. The top bit: a match ended before the character.
  using Step = uint32_t;
  static constexpr Step kMatched = 0x80000000u;
  static constexpr Step kDead = 0;

  int class_of(std::string_view text, size_t at, size_t* next) const;

  size_t classes_ = 0;                    // the last one: the end of the text
  std::vector<Step> steps_;               // [state][class]; state 0 is dead, 1 the start
  std::array<uint8_t, 128> ascii_class_;  // one-byte characters
  std::vector<uint8_t> class_blocks_;     // [block][64]
  std::vector<uint16_t> block_of_;        // [code point / 64]
};

inline int SplitPattern::class_of(std::string_view text, size_t at, size_t* next) const {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    *next = at + 1;
    return ascii_class_[lead];
  }
  char32_t code_point;
  if (lead < 0xE0) {
    code_point = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    *next = at + 2;
  } else if (lead < 0xF0) {
    code_point = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    *next = at + 3;
  } else {
    code_point =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    *next = at + 4;
  }
  return class_blocks_[block_of_[code_point >> 6] * size_t{64} + (code_point & 63)];
}

inline size_t SplitPattern::match(std::string_view text, size_t from) const {
  size_t at = from, end = kNone;
  const Step* row = steps_.data() + classes_;
  while (at < text.size()) {
    size_t next;
    const Step step = row[class_of(text, at, &next)];
    if (step & kMatched) end = at;
    if ((step & ~kMatched) == kDead) return end;
    row = steps_.data() + (step & ~kMatched);
    at = next;
  }
  return row[classes_ - 1] & kMatched ? at : end;
}

}  // namespace fleet::text
