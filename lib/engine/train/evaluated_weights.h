// The weights of an evaluation without training (train.evaluate_only).
#pragma once

#include <string>

#include "store/store.h"
#include "train/step_runner.h"

namespace fleet {

struct EvaluatedWeights {
  std::string source;  // the folder of a checkpoint, or a file
  std::string run;     // the folder of the run that the checkpoint belongs to; "": none
};

// Loads the weights that count (train/trained_weights.h) and, from a checkpoint, their position.
// All ranks call it: rank 0 chooses, and the other ranks read the same files. store: null in a job
// of one rank. kUsage without any, if they do not fit the network, or if they are of other classes.
EvaluatedWeights load_evaluated_weights(const Job& job, StepRunner& runner, JobRank own,
                                        Store* store);

}  // namespace fleet
