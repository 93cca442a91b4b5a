#include "ps/row_sum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace fleet::ps {

void RowSum::add(const RowsView& rows) {
  const size_t count = rows.ids.size();
  FLEET_CHECK(rows.values.size() == count * dim_ && rows.shows.size() == count &&
                  rows.clicks.size() == count,
              "a sum of rows of different sizes");
  unique_.expect(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t row = unique_.add(rows.ids[i]);
    const float* const values = rows.values.data() + i * dim_;
    if (row == rows_.ids.size()) {
      rows_.ids.push_back(rows.ids[i]);
      rows_.shows.push_back(rows.shows[i]);
      rows_.clicks.push_back(rows.clicks[i]);
      rows_.values.insert(rows_.values.end(), values, values + dim_);
      addends_.push_back(1);
      continue;
    }
    rows_.shows[row] += rows.shows[i];
    rows_.clicks[row] += rows.clicks[i];
    float* const sum = rows_.values.data() + row * dim_;
    for (size_t j = 0; j < dim_; ++j) sum[j] += values[j];
    ++addends_[row];
  }
}

void RowSum::add_zeros(int all) {
  for (size_t row = 0; row < addends_.size(); ++row) {
    if (addends_[row] == all) continue;
    for (size_t j = 0; j < dim_; ++j) rows_.values[row * dim_ + j] += 0.0f;
  }
}

RowPart RowSum::take() {
  unique_.clear(0);
  addends_.clear();
  return std::exchange(rows_, {});
}

bool RowSum::finite() const {
  return std::ranges::all_of(rows_.values, [](float value) { return std::isfinite(value); });
}

}  // namespace fleet::ps
