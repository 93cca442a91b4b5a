// Predictions of several ranks, in the order of their samples.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/prediction_file.h"

namespace fleet {

// Puts records that come in any order into that of the samples.
class OrderedRecords {
 public:
  using Rows = std::vector<std::vector<double>>;
  // Writes a record that did not fail.
  using Write = std::function<void(PredictionFile& file, int64_t sample, const std::string& name,
                                   const Rows& rows)>;
  OrderedRecords(std::unique_ptr<PredictionFile> file, Write write)
      : file_(std::move(file)), write_(std::move(write)) {}

  struct Record {
    std::string name, why;  // why: it failed
    Rows rows;              // the numbers of each of its rows
  };
  void add(int64_t sample, Record record);
  void finish() { file_->finish(); }

 private:
  std::unique_ptr<PredictionFile> file_;
  const Write write_;
  std::map<int64_t, Record> waiting_;
  int64_t next_ = 0;
};

}  // namespace fleet
