// The network of a prediction, and the numbers that it gives for a sample.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "exec/executor.h"
#include "strategy/served_tables.h"
#include "tensor/column.h"
#include "train/job.h"
#include "train/prediction_file.h"
#include "train/saved_rows.h"

namespace fleet {

// The format of predict.output: "jsonl", "csv" or "npy".
std::string prediction_format(const Settings& settings);

// The kind of the job's predictions follows from its task, or from predict.embedding; `names` stays
// empty. kUsage if the task predicts nothing, if the model gives no embedding, or if keys of
// predict.* contradict each other.
PredictionLayout prediction_layout(const Job& job);

// The executor of a network that is only evaluated, with initial weights; `results` are read.
std::unique_ptr<Executor> plan_prediction(const Job& job, Device& device, Program program,
                                          const std::vector<VarId>& results);

// A network for batches of one shape. Not thread-safe.
class PredictedValues {
 public:
  virtual ~PredictedValues() = default;
  virtual Executor& executor() = 0;
  virtual void run(const data::Batch& batch) = 0;
  // The tables whose rows it reads elsewhere: give them before run(). They must outlive it.
  virtual std::vector<ServedTable> tables() const { return {}; }
  virtual void set_rows(SavedRows* /*rows*/) {}
  // The numbers of sample i of the last batch (PredictionLayout::numbers); embeddings as they are,
  // whatever predict.normalize says.
  virtual void read(int64_t i, std::span<double> numbers) = 0;
};

// columns: shapes of one sample. The device must outlive it. The executor has initial
// weights.
std::unique_ptr<PredictedValues> make_predicted_values(const Job& job, Device& device,
                                                       const PredictionLayout& layout,
                                                       int64_t batch,
                                                       const std::vector<Column>& columns);

}  // namespace fleet
