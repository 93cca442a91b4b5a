#include "data/sampler.h"

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

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  FLEET_CHECK(options.batch > 0 && options.ranks > 0 && options.repeats > 0,
              "batch, ranks and repeats must be positive");
  FLEET_CHECK(options.rank >= 0 && options.rank < options.ranks, "rank must be below ranks");
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
  if (!options_.shuffle && !options_.classes) return;
  order_.resize(options_.samples);
  // Fisher-Yates from the identity, so that an epoch's order does not depend on earlier epochs. One
  // mix() per draw: with its 64 bits the bias of multiplying is negligible.
  const uint64_t key = mix(mix(options_.seed ^ 0x6f72646572u) + static_cast<uint64_t>(epoch));
  if (options_.classes) return draw_classes(key);
  std::iota(order_.begin(), order_.end(), int64_t{0});
  for (int64_t i = options_.samples - 1; i > 0; --i) {
    const auto draw = static_cast<unsigned __int128>(mix(key + static_cast<uint64_t>(i)));
    const auto j = static_cast<int64_t>((draw * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(order_[i], order_[j]);
  }
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
  const int64_t sample = order_.empty() ? drawn : order_[drawn];
  // A sample may be drawn twice; each draw gets its own random key, so the crops differ.
  const int64_t draw =
      options_.classes ? options_.samples + wrapped : repeat * options_.samples + sample;
  return {sample, position < options_.samples, draw};
}

}  // namespace fleet::data
