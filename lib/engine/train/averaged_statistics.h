// Running statistics that fit averaged weights (train.swa): one pass over training data, as
// torch.optim.swa_utils.update_bn().
#pragma once

#include <functional>

#include "data/pipeline.h"
#include "train/step_runner.h"

namespace fleet {

// All ranks make the same calls.
class AveragedStatistics {
 public:
  // As EvaluationOptions have them (train/evaluation.h).
  struct Callbacks {
    std::function<const data::Batch*()> next_batch;  // of `data`
    std::function<bool(bool works)> agree_on_step;   // false on all ranks ends the pass
    std::function<void()> batch_done;                // called after each batch
  };
  // Everything must outlive this.
  AveragedStatistics(const Job& job, StepRunner& runner, data::InputPipeline& data,
                     Callbacks callbacks);

  // Takes them for the averages of this step, unless it has; leaves the data at the position of
  // training. Does nothing if the job needs none, or while nothing is averaged yet. Several ranks
  // take the mean over them all. If the ranks end the pass early, the statistics stay as they were
  // before it.
  void update();

 private:
  bool run_batches();
  void average_over_ranks();

  StepRunner& runner_;
  data::InputPipeline& data_;
  const Callbacks callbacks_;
  const int64_t batches_;
  bool needed_ = false;
  std::vector<VarId> averages_;
  int64_t step_ = -1;  // the last one with new statistics
};

}  // namespace fleet
