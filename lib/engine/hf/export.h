// A trained language model as a folder of Hugging Face's, for transformers 4.57 and 5.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/json.h"
#include "models/text/language_model.h"
#include "train/job.h"
#include "train/safetensors.h"

namespace fleet {

// transformers 5 writes shards of at most 50 GB.
inline constexpr int64_t kShardBytes = 50'000'000'000;

// Writes config.json, generation_config.json, the weights and the tokenizer's files of the job's
// model into `folder`. Weights beyond shard_bytes are written as several files and an index. Files
// are written aside and renamed; weights of an earlier export that are not replaced are removed.
// find_trained_weights() selects the weights. Returns a one-line summary. kUsage if the model is
// not a language model, if there are no weights, if they do not fit, or if the folder has other
// files but no config.json, or is the folder of the model itself; kIo.
std::string export_hugging_face(const Job& job, const std::string& folder,
                                int64_t shard_bytes = kShardBytes);

// The tensors under transformers' names: parameters split into their parts. kUsage naming `path`
// if a parameter is missing or has another shape, or if there are more. outputs: the network's.
TensorFile hugging_face_tensors(const LanguageModel& model, const TensorFile& file,
                                const std::string& path, const std::set<std::string>& outputs = {});

// A config.json that transformers 4.57 and 5 read alike: rope_theta and rope_scaling besides
// rope_parameters, torch_dtype besides dtype. outputs: the network's, which choose the class that
// transformers loads. classes: names of the classes, or empty.
Json hugging_face_config(const LanguageModel& model, const Json& config, const std::string& dtype,
                         const std::set<std::string>& outputs = {},
                         const std::vector<std::string>& classes = {});

// The job of a checkpoint: the settings in the run's config.txt that are not defaults. kUsage if
// the folder is not a checkpoint of a run.
ConfigTree job_of_checkpoint(const std::string& checkpoint);

}  // namespace fleet
