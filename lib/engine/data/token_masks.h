// Which tokens of a row a model has to predict, and what it sees in their place. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/sentence_rows.h"

namespace fleet::data {

struct MaskRules {
  double rate = 0.15;           // masked tokens of a row / its tokens, with [CLS] and [SEP]
  int64_t most = 1;             // masked tokens of a row
  uint32_t mask = 0;            // the token [MASK]
  int64_t vocabulary = 1;       // random tokens are below this
  std::vector<bool> special;    // by id: never masked
  std::vector<bool> continues;  // by id: belongs to the word of the token before. Empty: tokens
                                // are masked one by one
};

// The masked tokens of a row of this many tokens: rate x tokens, rounded to the nearest (of two, to
// the even one), at least 1 and at most rules.most.
int64_t masked_budget(const MaskRules& rules, int64_t tokens);

// The places to predict, in ascending order, drawn by the key as create_masked_lm_predictions() of
// BERT does: masked_budget() tokens at random. Of whole words: words in random order, each with all
// its pieces; a word that exceeds the budget is passed over, so that there may be fewer. There are
// fewer, too, in a row with fewer tokens that are not special.
std::vector<int64_t> choose_masked(const SentenceRow& row, const MaskRules& rules, uint64_t key);

// Replaces the tokens at these places: with probability 0.8 by [MASK], 0.1 not at all, 0.1 by any
// token of the vocabulary; each on its own, by the key.
void mask_tokens(std::span<const int64_t> places, const MaskRules& rules, uint64_t key,
                 std::span<int64_t> ids);

}  // namespace fleet::data
