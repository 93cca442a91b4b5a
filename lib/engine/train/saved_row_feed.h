// Feeds a Program the rows of its tables from a checkpoint, without parameter servers.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "exec/executor.h"
#include "strategy/served_tables.h"
#include "train/saved_rows.h"
#include "train/unique_ids.h"

namespace fleet {

// Not thread-safe.
class SavedRowFeed {
 public:
  explicit SavedRowFeed(const Program& program);
  const std::vector<ServedTable>& tables() const { return tables_; }
  // rows: must outlive the calls below.
  void set_rows(SavedRows* rows) { rows_ = rows; }

  // The ids of a batch that feed() will get. Call it for all of them before rows->load().
  void want(const data::Batch& batch);
  // Feeds the rows of a batch, and the places of its ids.
  void feed(Executor& executor, const data::Batch& batch);

 private:
  std::vector<ServedTable> tables_;
  std::vector<std::vector<float>> values_;  // by table
  SavedRows* rows_ = nullptr;
  BatchIds ids_;
};

// For a job that only evaluates (train.evaluate_only).
class EvaluatedRows {
 public:
  // Reads the rows of these data's ids from the tables of the checkpoint in this folder. kUsage if
  // it is not one with tables; errors of SavedRows. stop: a signal (not 0) ends the reading.
  EvaluatedRows(const Job& job, const Program& program, const std::string& checkpoint,
                const OpenSavedRows& open, data::InputPipeline& test, const std::atomic<int>* stop);
  void feed(Executor& executor, const data::Batch& batch) { feed_.feed(executor, batch); }
  std::vector<std::string> missing_lines() const { return rows_->missing_lines(); }

 private:
  SavedRowFeed feed_;
  std::unique_ptr<SavedRows> rows_;
};

}  // namespace fleet
