// Gradients of a table's rows, added up over the steps of an update (gradient_merge).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "exec/parameter_exchange.h"

namespace fleet::ps {

// Not thread-safe.
class RowMerger {
 public:
  RowMerger(std::string table, size_t dim) : dim_(dim) { rows_.table = std::move(table); }

  bool empty() const { return rows_.ids.empty(); }
  // Ids in order of their first occurrence, each once.
  const MergedRows& rows() const { return rows_; }
  // A step's ids, none twice; gradients: [ids.size(), dim].
  void add(std::span<const uint64_t> ids, std::span<const uint32_t> occurrences,
           std::span<const float> clicks, std::span<const float> gradients);
  // Goes on from these, which rows() has returned.
  void restore(MergedRows rows);
  void clear();
  // Whether no gradient is infinite or NaN.
  bool finite() const;

 private:
  const size_t dim_;
  MergedRows rows_;
  std::unordered_map<uint64_t, size_t> places_;
};

// kUsage: a checkpoint has merged rows of a table that the servers do not have.
[[noreturn]] void throw_unknown_table(const std::string& name);

}  // namespace fleet::ps
