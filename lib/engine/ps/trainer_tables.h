// The tables of a trainer: the rows of its batch, and their gradients up to an update. What the
// modes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/parameter_exchange.h"
#include "ps/row_sum.h"
#include "ps/tables/table_settings.h"
#include "strategy/served_tables.h"
#include "train/unique_ids.h"

namespace fleet::ps {

inline constexpr char kLabelColumn[] = "label";  // clicks: float32, one number per sample

// One table's rows for a batch. For one thread.
class BatchRows {
 public:
  BatchRows(ServedTable served, const TableSettings& settings);

  const ServedTable& served() const { return served_; }
  size_t dim() const { return static_cast<size_t>(served_.dim); }
  // Reads the ids of a batch, and feeds their places. An evaluation has no clicks.
  void set(Executor& executor, const ParameterExchange::Columns& columns, bool evaluation);
  // Each once, in order of occurrence; the others by the same number.
  const std::vector<uint64_t>& ids() const { return ids_.ids(); }
  const std::vector<uint32_t>& occurrences() const { return ids_.occurrences(); }
  // A row's values, which feed() gives to the executor.
  float* row(size_t number) { return &values_[number * dim()]; }
  void feed(Executor& executor) { executor.feed(served_.rows, values_); }

  // Adds the gradients of the batch to the sums.
  void merge(Executor& executor);
  // Reads them for an update, and adds the sums of previous steps.
  void collect(Executor& executor);
  const RowSum& sums() const { return sums_; }  // empty: the update has one step
  // The update's rows: sums, or the batch alone.
  RowsView collected() const;
  // Sums of earlier steps of an update.
  MergedRows merged() const;
  void restore(MergedRows rows);
  void clear_sums() { sums_.clear(); }

 private:
  RowsView of_batch() const;

  ServedTable served_;
  bool scores_ = false;
  BatchIds ids_;
  std::vector<float> values_, gradients_;  // [most, dim]
  std::vector<float> shows_, clicks_;      // by number
  RowSum sums_;
};

// All tables of a trainer. For one thread.
class TrainerTables {
 public:
  bool empty() const { return batches_.empty(); }
  // After a step without an update: adds up the gradients of its rows.
  void merge(Executor& executor);
  // After a step with one: reads the gradients of its rows, and adds those before. Does nothing if
  // it was called since the last update.
  void collect(Executor& executor);
  // After collect(): whether sums of this gradient (ServedTable::gradient) are finite.
  bool merged_is_finite(const Program& program, const std::string& gradient) const;
  std::vector<MergedRows> merged_rows() const;

 protected:
  // settings: each table's, in the same order.
  TrainerTables(std::vector<ServedTable> tables, const std::vector<TableSettings>& settings);
  ~TrainerTables() = default;

  std::vector<BatchRows>& batches() { return batches_; }
  const std::vector<BatchRows>& batches() const { return batches_; }
  // The position of a table. kUsage: a checkpoint has merged rows of a table that the servers do
  // not have.
  size_t find(const std::string& name) const;
  // The collected gradients are used up.
  void end_update();

 private:
  std::vector<BatchRows> batches_;
  bool collected_ = false;  // since the last update
};

}  // namespace fleet::ps
