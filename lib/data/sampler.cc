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
  FLEET_CHECK(options.batch > 0 && options.ranks > 0, "batch and ranks must be positive");
  FLEET_CHECK(options.rank >= 0 && options.rank < options.ranks, "rank must be below ranks");
  if (options.samples < 1) {
    throw Error(ErrorCode::kUsage, "there are no samples", "data", "give data with samples");
  }
  const int64_t global = options.batch * options.ranks;
  batches_ = options.samples / global;
  if (options.tail == Tail::kPad && options.samples % global != 0) ++batches_;
  if (batches_ == 0) {
    throw Error(ErrorCode::kUsage,
                "the data has " + std::to_string(options.samples) +
                    " samples, fewer than one global batch of " + std::to_string(global),
                "data.tail", "set data.tail to pad, or data.batch_size lower");
  }
  start_epoch(0);
}

void Sampler::start_epoch(int64_t epoch) {
  epoch_ = epoch;
  if (!options_.shuffle) return;
  order_.resize(options_.samples);
  std::iota(order_.begin(), order_.end(), int64_t{0});
  // Fisher-Yates from the identity, so that an epoch's order does not depend on earlier epochs. One
  // mix() a draw: its 64 bits make the bias of multiplying negligible.
  const uint64_t key = mix(mix(options_.seed ^ 0x6f72646572u) + static_cast<uint64_t>(epoch));
  for (int64_t i = options_.samples - 1; i > 0; --i) {
    const auto draw = static_cast<unsigned __int128>(mix(key + static_cast<uint64_t>(i)));
    const auto j = static_cast<int64_t>((draw * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(order_[i], order_[j]);
  }
}

Pick Sampler::pick(int64_t batch, int64_t i) const {
  const int64_t position = (batch * options_.ranks + options_.rank) * options_.batch + i;
  const int64_t wrapped = position % options_.samples;
  return {order_.empty() ? wrapped : order_[wrapped], position < options_.samples};
}

}  // namespace fleet::data
