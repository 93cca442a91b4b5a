#include "data/alias_table.h"

#include <numeric>

#include "base/error.h"

namespace fleet::data {

AliasTable::AliasTable(std::span<const double> weights) {
  const size_t count = weights.size();
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  FLEET_CHECK(sum > 0 && count < UINT32_MAX, "draws from an empty distribution");
  std::vector<double> scaled(count);
  std::vector<uint32_t> small, large;
  for (size_t i = 0; i < count; ++i) {
    scaled[i] = weights[i] / sum * static_cast<double>(count);
    (scaled[i] < 1 ? small : large).push_back(static_cast<uint32_t>(i));
  }
  keep_.assign(count, UINT32_MAX);
  alias_.resize(count);
  std::iota(alias_.begin(), alias_.end(), 0);
  while (!small.empty() && !large.empty()) {
    const uint32_t low = small.back(), high = large.back();
    small.pop_back();
    keep_[low] = static_cast<uint32_t>(scaled[low] * 0x1p32);
    alias_[low] = high;
    scaled[high] -= 1 - scaled[low];
    if (scaled[high] >= 1) continue;
    large.pop_back();
    small.push_back(high);
  }
}

}  // namespace fleet::data
