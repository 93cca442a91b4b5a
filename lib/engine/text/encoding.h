// Tokens of one or two texts, with their types, places and words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/aligned_text.h"

namespace fleet::text {

// Which text loses tokens if both together are too long.
enum class TruncationRule { kLongestFirst, kOnlyFirst, kOnlySecond };
// "longest_first", "only_first", "only_second"; nullopt for other names.
std::optional<TruncationRule> truncation_rule(std::string_view name);

struct TruncateTo {
  size_t most = 0;  // tokens, with those of the post-processor
  TruncationRule rule = TruncationRule::kLongestFirst;
  bool left = false;  // cuts the beginning of a text instead of its end
};

struct EncodeOptions {
  bool special_tokens = true;  // adds those of the post-processor
  bool offsets = false;        // fills Encoding::offsets; slower
  // Replaces the file's setting.
  std::optional<TruncateTo> truncation;
};

// The vectors have one element a token. Padding is not part of it.
struct Encoding {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> type_ids;  // segments, as the post-processor numbers them
  // The number of the word (piece of the pre-tokenizer, or added token) in its text; -1 for a token
  // of the post-processor.
  std::vector<int32_t> words;
  std::vector<int8_t> texts;  // 0: the first text, 1: the second; -1: the post-processor's
  // Bytes of the token's text; 0, 0 for tokens of the post-processor. Empty unless asked for.
  std::vector<TextRange> offsets;
  size_t removed = 0;  // tokens that truncation took away

  size_t size() const { return ids.size(); }
};

}  // namespace fleet::text
