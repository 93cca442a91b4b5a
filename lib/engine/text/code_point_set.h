// Sets of Unicode code points, as sorted ranges.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

namespace fleet::text {

struct CodePointRange {
  char32_t first, last;  // inclusive
};

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

// Sorted, without overlaps, once normalize() ran; the functions below return such sets.
class CodePointSet {
 public:
  CodePointSet() = default;
  CodePointSet(std::initializer_list<CodePointRange> ranges);
  void add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  void add(const CodePointSet& other);
  void normalize();
  CodePointSet complement() const;  // of a normalized set
  bool contains(char32_t code_point) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CodePointRange>& ranges() const { return ranges_; }

 private:
  std::vector<CodePointRange> ranges_;
};

// White_Space: what \s matches.
const CodePointSet& white_space();
// What \w matches in Oniguruma, Hugging Face's engine of regular expressions. Outside of a class it
// matches six superscripts and fractions more.
const CodePointSet& pattern_word_characters(bool in_class);
// What \w matches in Rust's engine: of Whitespace, and of added tokens with single_word.
const CodePointSet& word_characters();
// A general category ("Lu") or a group of them ("L"), as in \p{Lu}. nullptr if there is none.
const CodePointSet* general_category(std::string_view name);

}  // namespace fleet::text
