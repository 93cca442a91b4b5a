// The weights that a job predicts with (predict.checkpoint).
#pragma once

#include <string>

#include "train/initial_weights.h"
#include "train/job.h"
#include "train/model_card.h"

namespace fleet {

struct PredictionWeights {
  std::string path;  // of the file
  std::string what;  // for a message
  TensorFile file;
  ModelCard card;
};

// "auto": the newest checkpoint in train.output, or of the job's runs below output/NAME; a damaged
// one is passed over with a line. kUsage where there is none; errors of read_safetensors().
PredictionWeights weights_to_predict(const Job& job);

}  // namespace fleet
