#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/random.h"

namespace fleet::data {

Tail parse_tail(const std::string& text) {
  if (text == "pad") return Tail::kPad;
  if (text == "drop") return Tail::kDrop;
  throw Error(ErrorCode::kUsage, "unknown tail '" + text + "'", {}, "known: pad, drop");
}

// Fisher-Yates. One mix() per draw: with its 64 bits the bias of multiplying is negligible.
static void shuffle(std::vector<int64_t>& order, uint64_t key) {
  for (auto i = static_cast<int64_t>(order.size()) - 1; i > 0; --i) {
    const auto draw = static_cast<unsigned __int128>(mix(key + static_cast<uint64_t>(i)));
    const auto j = static_cast<int64_t>((draw * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(order[i], order[j]);
  }
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  FLEET_CHECK(options.batch > 0 && options.ranks > 0 && options.repeats > 0,
              "batch, ranks and repeats must be positive");
  FLEET_CHECK(options.rank >= 0 && options.rank < options.ranks, "rank must be below ranks");
  FLEET_CHECK(!options.lengths || options.repeats == 1, "repeats of samples of several lengths");
  if (options.samples < 1) {
    throw Error(ErrorCode::kUsage, "there are no samples", "data", "use data with samples");
  }
  const int64_t global = options.batch * options.ranks;
  batches_ = options.samples / global;
  if (options.tail == Tail::kPad && options.samples % global != 0) ++batches_;
  if (batches_ == 0) {
    throw Error(ErrorCode::kUsage,
                "the data has " + std::to_string(options.samples) +
                    " samples, fewer than one global batch of " + std::to_string(global),
                "data.tail", "set data.tail to pad, or lower data.batch_size");
  }
  start_epoch(0);
}

void Sampler::start_epoch(int64_t epoch) {
  epoch_ = epoch;
  const bool random = options_.shuffle || options_.classes;
  if (!random && !options_.lengths) return;
  const uint64_t key = mix(mix(options_.seed ^ 0x6f72646572u) + static_cast<uint64_t>(epoch));
  if (options_.samples > options_.stored_order && !options_.classes && !options_.lengths) {
    permutation_.emplace(options_.samples, key);
    return;
  }
  order_.resize(options_.samples);
  if (options_.classes) {
    draw_classes(key);
  } else {
    // From the identity, so that an epoch's order does not depend on earlier epochs.
    std::iota(order_.begin(), order_.end(), int64_t{0});
    if (random) shuffle(order_, key);
  }
  if (!options_.lengths) return;
  if (random) return group_by_length(key);
  sort_by_length(0, options_.samples);
}

void Sampler::sort_by_length(int64_t begin, int64_t end) {
  const std::vector<uint8_t>& lengths = *options_.lengths;
  std::stable_sort(order_.begin() + begin, order_.begin() + end,
                   [&](int64_t a, int64_t b) { return lengths[a] < lengths[b]; });
}

void Sampler::group_by_length(uint64_t key) {
  const int64_t global = global_batch(), whole = options_.samples / global;
  for (int64_t from = 0; from < whole; from += kLengthWindow) {
    sort_by_length(from * global, std::min(from + kLengthWindow, whole) * global);
  }
  std::vector<int64_t> batches(whole);
  std::iota(batches.begin(), batches.end(), int64_t{0});
  shuffle(batches, mix(key ^ 0x6c656e677468u));
  std::vector<int64_t> order;
  order.reserve(order_.size());
  for (const int64_t batch : batches) {
    const auto begin = order_.begin() + batch * global;
    order.insert(order.end(), begin, begin + global);
  }
  order.insert(order.end(), order_.begin() + whole * global, order_.end());
  order_.swap(order);
}

int Sampler::length_class(int64_t batch) const {
  if (!options_.lengths) return 0;
  uint8_t most = 0;
  for (int64_t i = 0; i < global_batch(); ++i) {
    most = std::max(most, (*options_.lengths)[at(batch * global_batch() + i).sample]);
  }
  return most;
}

void Sampler::draw_classes(uint64_t key) {
  const auto below = [&](int64_t draw, size_t count) {
    const auto bits = static_cast<unsigned __int128>(mix(key + static_cast<uint64_t>(draw)));
    return static_cast<size_t>((bits * count) >> 64);
  };
  const auto& classes = *options_.classes;
  for (int64_t i = 0; i < options_.samples; ++i) {
    const std::vector<int64_t>& samples = classes[below(2 * i, classes.size())];
    order_[i] = samples[below(2 * i + 1, samples.size())];
  }
}

Pick Sampler::at(int64_t position) const {
  const int64_t wrapped = position % options_.samples;
  const int64_t drawn = wrapped / options_.repeats, repeat = wrapped % options_.repeats;
  const int64_t sample = !order_.empty() ? order_[drawn]
                         : permutation_  ? (*permutation_)(drawn)
                                         : drawn;
  // A sample may be drawn twice; each draw gets its own random key, so the crops differ.
  const int64_t draw =
      options_.classes ? options_.samples + wrapped : repeat * options_.samples + sample;
  return {sample, position < options_.samples, draw};
}

}  // namespace fleet::data
