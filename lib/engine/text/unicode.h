// Properties of Unicode code points, from the tables of scripts/make_unicode_tables.py.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/aligned_text.h"
#include "text/code_point_set.h"

namespace fleet::text {

// Calls `run` with the code points of one general category after another, in ascending order.
void for_each_category_run(
    const std::function<void(char32_t first, char32_t last, std::string_view category)>& run);

// Sets that Hugging Face's tokenizers take from older or newer versions than 16.
enum class OtherSet {
  kBertPunctuation,  // ASCII punctuation, and the punctuation of Unicode 8
  kBertMarks,        // nonspacing marks of Unicode 8
  kBertControls,     // what BertNormalizer's clean_text removes
  kAccents,          // what StripAccents removes
  kNumbers,          // of Unicode 17
};
const CodePointSet& other_set(OtherSet set);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };  // https://www.unicode.org/reports/tr15
// Valid UTF-8 in and out.
std::string normal_form(NormalForm form, std::string_view text);
// The same, character by character, as unicode-normalization-alignments (a crate of Rust) does it.
std::vector<CharacterChange> normal_form_changes(NormalForm form, std::string_view text);

// Each character alone, so that a final sigma becomes σ; "İ" becomes two characters.
std::string unicode_lower_case(std::string_view text);
// Appends the lower case of one character.
void append_lower_case(char32_t code_point, std::string& text);

}  // namespace fleet::text
