#include "data/token_masks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/random.h"

namespace fleet::data {
namespace {

// The maskable tokens from `begin` to `end`.
struct MaskUnit {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

std::vector<MaskUnit> units_of(const SentenceRow& row, const MaskRules& rules) {
  std::vector<MaskUnit> units;
  for (int64_t i = 0; i < static_cast<int64_t>(row.ids.size()); ++i) {
    if (rules.special[row.ids[i]]) continue;
    const bool continues = !rules.continues.empty() && rules.continues[row.ids[i]] &&
                           !row.begins[i] && !units.empty() && units.back().end == i;
    if (continues) {
      ++units.back().end;
    } else {
      units.push_back({i, i + 1});
    }
  }
  return units;
}

}  // namespace

int64_t masked_budget(const MaskRules& rules, int64_t tokens) {
  const double wanted = std::nearbyint(static_cast<double>(tokens) * rules.rate);
  return std::min(rules.most, std::max<int64_t>(static_cast<int64_t>(wanted), 1));
}

std::vector<int64_t> choose_masked(const SentenceRow& row, const MaskRules& rules, uint64_t key) {
  const int64_t budget = masked_budget(rules, static_cast<int64_t>(row.ids.size()));
  std::vector<MaskUnit> units = units_of(row, rules);
  RandomStream random(key, "masked_places");
  std::vector<int64_t> places;
  const auto left = [&] { return budget - static_cast<int64_t>(places.size()); };
  // The first steps of the shuffle of Fisher and Yates.
  const auto count = static_cast<int64_t>(units.size());
  for (int64_t i = 0; i < count && left() > 0; ++i) {
    std::swap(units[i], units[i + random.below(count - i)]);
    if (units[i].size() > left()) continue;
    for (int64_t at = units[i].begin; at < units[i].end; ++at) places.push_back(at);
  }
  std::ranges::sort(places);
  return places;
}

void mask_tokens(std::span<const int64_t> places, const MaskRules& rules, uint64_t key,
                 std::span<int64_t> ids) {
  RandomStream random(key, "masked_tokens");
  for (const int64_t place : places) {
    const double share = random.uniform();
    const int64_t other = random.below(rules.vocabulary);
    if (share < 0.8) {
      ids[place] = rules.mask;
    } else if (share < 0.9) {
      ids[place] = other;
    }
  }
}

}  // namespace fleet::data
