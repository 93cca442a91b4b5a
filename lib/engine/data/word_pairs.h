// Which words make up a sample of skip-gram with negative sampling (Mikolov et al. 2013,
// "Distributed Representations of Words and Phrases"): a word, a neighbour, and drawn words.
// Internal to data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/alias_table.h"
#include "data/random.h"
#include "data/token_rows.h"

namespace fleet::data {

struct WordPairOptions {
  int64_t window = 5;     // largest distance of a neighbour
  int64_t negatives = 5;  // drawn words of a pair
  double exponent = 0.75;
  // A word of the fraction f of all words is kept with probability min(1, sqrt(t/f) + t/f), for
  // t = subsample, as in the program word2vec; 0: always.
  double subsample = 1e-3;
};

// Samples are a function of (index, key) alone, so they do not depend on the number of ranks.
// Immutable: thread-safe.
//
// An epoch has as many pairs as word2vec expects: kept words x (window + 1). Pairs are spread over
// the occurrences of words evenly, in proportion to the probability of being kept. The neighbour of
// a pair is at distance d with a weight of window - d + 1, before or behind; words that are not
// kept do not count for the distance. The words that are kept are drawn for each pair.
class WordPairs {
 public:
  // words: numbers below counts.size(), and lines of two or more that each end with counts.size().
  // counts: of occurrences, by number, of at least two words.
  WordPairs(std::shared_ptr<const TokenSequence> words, std::vector<int64_t> counts,
            const WordPairOptions& options);
  int64_t size() const { return size_; }  // in an epoch
  // context: the neighbour, then words drawn with probability in proportion to count^exponent,
  // never the neighbour.
  void fill(int64_t index, uint64_t key, int64_t* center, std::span<int64_t> context) const;
  // Expected number of occurrences that are kept in an epoch.
  double kept() const { return ends_.back(); }

 private:
  struct Place {
    int64_t position = 0;
    uint32_t word = 0;
  };
  double part_kept(uint32_t word) const { return word < kept_.size() ? kept_[word] : 0; }
  void sum_blocks();
  Place place_of(double at) const;
  // The word `distance` kept words away; false if the line ends before.
  bool walk(int64_t from, int64_t step, int64_t distance, RandomStream* random,
            uint32_t* word) const;
  uint32_t neighbour_of(const Place& place, RandomStream* random) const;

  const std::shared_ptr<const TokenSequence> words_;
  const WordPairOptions options_;
  const uint32_t line_end_;
  std::vector<double> kept_;  // probability by word
  std::vector<double> ends_;  // the sum of part_kept() to the end of each block of words
  const AliasTable negatives_;
  int64_t size_ = 0;
};

}  // namespace fleet::data
