// The weights that a job has trained, for prediction or export.
#pragma once

#include <string>
#include <vector>

#include "train/initial_weights.h"
#include "train/job.h"
#include "train/model_card.h"

namespace fleet {

struct TrainedWeights {
  std::vector<std::string> paths;  // the files'; the one with the card is first
  std::string what;                // "the average of the weights of output/net/run-001/..."
  TensorFile file;
  ModelCard card;
};

// wanted: a file of weights; the folder of a checkpoint; or "auto": the newest checkpoint in
// train.output, or of the job's runs below output/NAME; skips a damaged one and logs a line. From a
// checkpoint it takes the average of the weights if it exists, as evaluations do. key: the key
// that named it, for messages. kUsage if none exists; errors of read_weights().
TrainedWeights trained_weights(const Job& job, const std::string& wanted, const std::string& key);

}  // namespace fleet
