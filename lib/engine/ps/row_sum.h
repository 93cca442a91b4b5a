// Sums a table's rows by id: over the trainers of a step on a server, over the steps of an update
// (gradient_merge), over the pushes that async merges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/unique_ids.h"

namespace fleet::ps {

// One table's rows, without repeated ids. A pushed part has those of one server only.
struct RowPart {
  std::vector<uint64_t> ids = {};
  std::vector<float> shows = {}, clicks = {};  // by id
  std::vector<float> values = {};  // [ids, dim]: gradients, in geo differences of values
};

// The same elsewhere.
struct RowsView {
  std::span<const uint64_t> ids;
  std::span<const float> shows, clicks, values;

  RowsView() = default;
  RowsView(std::span<const uint64_t> of, std::span<const float> own_shows,
           std::span<const float> own_clicks, std::span<const float> own_values)
      : ids(of), shows(own_shows), clicks(own_clicks), values(own_values) {}
  RowsView(const RowPart& part)  // NOLINT(google-explicit-constructor)
      : ids(part.ids), shows(part.shows), clicks(part.clicks), values(part.values) {}
};

// Not thread-safe.
class RowSum {
 public:
  explicit RowSum(size_t dim) : dim_(dim) {}

  bool empty() const { return rows_.ids.empty(); }
  // Ids in order of their first occurrence.
  const RowPart& rows() const { return rows_; }
  // So many ids are coming; add() is then faster.
  void expect(size_t ids) { unique_.expect(ids); }
  // From left to right in the order of these calls. kInternal for rows of another size.
  void add(const RowsView& rows);
  // The zeros of addends without a row change only the sign of a zero. all: calls of add().
  void add_zeros(int all);
  RowPart take();
  void clear() { take(); }
  // Whether no value is infinite or NaN.
  bool finite() const;

 private:
  const size_t dim_;
  UniqueIds unique_;
  RowPart rows_;
  std::vector<uint16_t> addends_;  // by row
};

}  // namespace fleet::ps
