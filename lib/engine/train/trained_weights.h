// The weights that a job has trained, for evaluation, prediction and export.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/job.h"
#include "train/model_card.h"
#include "train/pretrained_record.h"
#include "train/safetensors.h"

namespace fleet {

struct TrainedWeights {
  std::string source;              // the folder of a checkpoint, or a file
  std::vector<std::string> paths;  // the files'; the one with the card is first
  std::string what;                // "the average of the weights of output/net/run-001/..."
  TensorFile file;
  ModelCard card;
  std::optional<PretrainedRecord> record = {};  // for networks of images
  std::optional<TrainingPosition> position;     // the checkpoint's; nullopt: unknown
  std::string warning = {};                     // what may make results wrong; "": nothing known
  std::vector<std::string> lines = {};          // about content that the job does not use
};

// The weights that count outside training. The first of these that exists:
//   1. those that this command line names: --set predict.checkpoint, checkpoint.weights, or a
//      folder in checkpoint.resume
//   2. if the job predicts, those that the job file names in predict.checkpoint
//   3. the folder that the job file names in checkpoint.resume
//   4. the job's newest complete checkpoint, in train.output or in the runs below output/NAME; a
//      line tells which ones are damaged
//   5. checkpoint.weights of the job file
// From a checkpoint it takes the average of the weights if it exists, as evaluations during
// training do. Nullopt without any; errors of read_trained_weights().
std::optional<TrainedWeights> find_trained_weights(const Job& job);

// The same; kUsage without any. key: the setting that could name some, for the message.
TrainedWeights trained_weights(const Job& job, const std::string& key);

// source: TrainedWeights::source. key: the setting that named it, for messages. DamagedFile;
// kUsage if it is a checkpoint of another model, or of other network_difference(), or none; errors
// of read_weights().
TrainedWeights read_trained_weights(const Job& job, const std::string& source,
                                    const std::string& key);

// The names of the classes: data.class_names, or else those that the weights' file states, or else
// those in the config.json of the model's folder. kUsage if both of the former exist and differ.
std::vector<std::string> class_names(const Job& job, const TrainedWeights& weights);

// Writes them to the executor of the job's network and drops them. kUsage naming a parameter that
// has no value, whatever checkpoint.weights_skip says: it would keep its random value. headless: as
// in WeightsOptions. Returns lines about ignored or changed content.
std::vector<std::string> load_trained_weights(const Job& job, TrainedWeights* weights,
                                              Executor& executor, bool headless = false);

}  // namespace fleet
