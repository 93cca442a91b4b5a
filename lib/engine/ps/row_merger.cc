#include "ps/row_merger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace fleet::ps {

void RowMerger::add(std::span<const uint64_t> ids, std::span<const uint32_t> occurrences,
                    std::span<const float> clicks, std::span<const float> gradients) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::span<const float> gradient = gradients.subspan(i * dim_, dim_);
    const auto [entry, added] = places_.try_emplace(ids[i], rows_.ids.size());
    const auto shows = static_cast<float>(occurrences[i]);
    if (added) {
      rows_.ids.push_back(ids[i]);
      rows_.shows.push_back(shows);
      rows_.clicks.push_back(clicks[i]);
      rows_.gradients.insert(rows_.gradients.end(), gradient.begin(), gradient.end());
      continue;
    }
    const size_t place = entry->second;
    rows_.shows[place] += shows;
    rows_.clicks[place] += clicks[i];
    float* const sum = rows_.gradients.data() + place * dim_;
    for (size_t j = 0; j < dim_; ++j) sum[j] += gradient[j];
  }
}

void RowMerger::restore(MergedRows rows) {
  FLEET_CHECK(rows.table == rows_.table && rows.gradients.size() == rows.ids.size() * dim_ &&
                  rows.shows.size() == rows.ids.size() && rows.clicks.size() == rows.ids.size(),
              "merged rows of another table than '" + rows_.table + "'");
  rows_ = std::move(rows);
  places_.clear();
  for (size_t place = 0; place < rows_.ids.size(); ++place) places_[rows_.ids[place]] = place;
}

void RowMerger::clear() {
  rows_ = {.table = std::move(rows_.table)};
  places_.clear();
}

bool RowMerger::finite() const {
  return std::ranges::all_of(rows_.gradients, [](float value) { return std::isfinite(value); });
}

void throw_unknown_table(const std::string& name) {
  throw Error(ErrorCode::kUsage, "the checkpoint has gradients of the table '" + name + "'",
              "tables", "put that table on the servers, or set checkpoint.resume to \"no\"");
}

}  // namespace fleet::ps
