#include "train/saved_row_feed.h"

#include "base/error.h"
#include "base/file_status.h"

namespace fleet {

SavedRowFeed::SavedRowFeed(const Program& program) : tables_(served_tables(program)) {
  for (const ServedTable& table : tables_) {
    values_.emplace_back(static_cast<size_t>(table.most * table.dim));
  }
}

void SavedRowFeed::want(const data::Batch& batch) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    ids_.set(batch.column(tables_[t].column), tables_[t].name);
    rows_->want(static_cast<int>(t), ids_.ids());
  }
}

void SavedRowFeed::feed(Executor& executor, const data::Batch& batch) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const ServedTable& table = tables_[t];
    ids_.set(batch.column(table.column), table.name);
    const auto count = ids_.ids().size() * static_cast<size_t>(table.dim);
    rows_->read(static_cast<int>(t), ids_.ids(), std::span(values_[t]).first(count));
    executor.feed(table.places, ids_.places());
    executor.feed(table.rows, values_[t]);
    executor.synchronize();  // ids_ is the next table's, too
  }
}

EvaluatedRows::EvaluatedRows(const Job& job, const Program& program, const std::string& checkpoint,
                             const OpenSavedRows& open, data::InputPipeline& test,
                             const std::atomic<int>* stop)
    : feed_(program) {
  if (!is_folder(checkpoint)) {
    throw Error(ErrorCode::kUsage, "it has no tables, and the job has a section tables", checkpoint,
                "set checkpoint.resume to the folder of a checkpoint");
  }
  rows_ = open(job, program, checkpoint);
  feed_.set_rows(rows_.get());
  test.start_epoch(0);
  while (const data::Batch* batch = test.next(stop)) feed_.want(*batch);
  rows_->load();
}

}  // namespace fleet
