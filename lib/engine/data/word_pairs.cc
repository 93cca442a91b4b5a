#include "data/word_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fleet::data {
namespace {

constexpr int64_t kWordBlock = 256;  // words
constexpr int kTries = 16;

std::vector<double> powers(const std::vector<int64_t>& counts, double exponent) {
  std::vector<double> powers;
  for (const int64_t count : counts) {
    powers.push_back(std::pow(static_cast<double>(count), exponent));
  }
  return powers;
}

std::vector<double> kept_parts(const std::vector<int64_t>& counts, double subsample) {
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> parts;
  for (const int64_t count : counts) {
    const double rare = subsample * all / std::max(static_cast<double>(count), 1.0);
    parts.push_back(subsample > 0 ? std::min(1.0, std::sqrt(rare) + rare) : 1);
  }
  return parts;
}

uint64_t bits_of(RandomStream* random) {
  const uint64_t high = random->bits();
  return high << 32 | random->bits();
}

}  // namespace

WordPairs::WordPairs(std::shared_ptr<const TokenSequence> words, std::vector<int64_t> counts,
                     const WordPairOptions& options)
    : words_(std::move(words)),
      options_(options),
      line_end_(static_cast<uint32_t>(counts.size())),
      kept_(kept_parts(counts, options.subsample)),
      negatives_(powers(counts, options.exponent)) {
  FLEET_CHECK(counts.size() >= 2 && words_->size() >= 3, "pairs of no words");
  sum_blocks();
  size_ = std::max<int64_t>(1, std::llround(kept() * static_cast<double>(options_.window + 1)));
}

void WordPairs::sum_blocks() {
  std::array<uint32_t, kWordBlock> block;
  double sum = 0;
  for (int64_t begin = 0; begin < words_->size(); begin += kWordBlock) {
    const auto count = static_cast<size_t>(std::min(kWordBlock, words_->size() - begin));
    words_->copy(begin, std::span(block).first(count));
    for (size_t i = 0; i < count; ++i) sum += part_kept(block[i]);
    ends_.push_back(sum);
  }
}

// The word at which the sum of part_kept() passes `at`.
WordPairs::Place WordPairs::place_of(double at) const {
  const auto found = std::upper_bound(ends_.begin(), ends_.end(), at);
  const int64_t number = std::min<int64_t>(found - ends_.begin(), std::ssize(ends_) - 1);
  const int64_t begin = number * kWordBlock;
  std::array<uint32_t, kWordBlock> block;
  const auto count = static_cast<size_t>(std::min(kWordBlock, words_->size() - begin));
  words_->copy(begin, std::span(block).first(count));
  double sum = number == 0 ? 0 : ends_[static_cast<size_t>(number) - 1];
  Place place;
  for (size_t i = 0; i < count; ++i) {
    if (block[i] == line_end_) continue;
    place = {.position = begin + static_cast<int64_t>(i), .word = block[i]};
    sum += part_kept(block[i]);
    if (sum > at) break;
  }
  return place;
}

bool WordPairs::walk(int64_t from, int64_t step, int64_t distance, RandomStream* random,
                     uint32_t* word) const {
  for (int64_t at = from + step; at >= 0 && at < words_->size(); at += step) {
    words_->copy(at, {word, 1});
    if (*word == line_end_) return false;
    if (random->uniform() < part_kept(*word) && --distance == 0) return true;
  }
  return false;
}

uint32_t WordPairs::neighbour_of(const Place& place, RandomStream* random) const {
  uint32_t word = 0;
  const int64_t window = options_.window;
  for (int i = 0; i < kTries; ++i) {
    int64_t distance = 1;
    for (int64_t rest = random->below(window * (window + 1) / 2); rest >= window - distance + 1;) {
      rest -= window - distance + 1;
      ++distance;
    }
    const int64_t step = random->below(2) == 0 ? -1 : 1;
    if (walk(place.position, step, distance, random, &word)) return word;
  }
  // A short line, or its words are too frequent: a word beside it.
  const int64_t first = random->below(2) == 0 ? -1 : 1;
  for (const int64_t step : {first, -first}) {
    const int64_t at = place.position + step;
    if (at < 0 || at >= words_->size()) continue;
    words_->copy(at, {&word, 1});
    if (word != line_end_) return word;
  }
  throw Error(ErrorCode::kInternal, "a line of one word", "word pairs");
}

void WordPairs::fill(int64_t index, uint64_t key, int64_t* center,
                     std::span<int64_t> context) const {
  RandomStream random(key, "skip_gram");
  const double at = (static_cast<double>(index) + random.uniform()) * kept();
  const Place place = place_of(at / static_cast<double>(size_));
  const uint32_t neighbour = neighbour_of(place, &random);
  *center = place.word;
  context[0] = neighbour;
  for (int64_t& drawn : context.subspan(1)) {
    drawn = negatives_.draw(bits_of(&random));
    for (int i = 0; drawn == neighbour && i < kTries; ++i) {
      drawn = negatives_.draw(bits_of(&random));
    }
    if (drawn == neighbour) drawn = neighbour == 0 ? 1 : 0;
  }
}

}  // namespace fleet::data
