// Weights of language models under the names of Hugging Face's transformers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/text/language_model.h"
#include "train/job.h"
#include "train/safetensors.h"

namespace fleet {

// The file of weights in a folder of Hugging Face's: model.safetensors or the index of its shards,
// else pytorch_model.bin or its index; "" if it has none.
std::string weights_in_folder(const std::string& folder);

// The file of weights that the job's model names, with which training starts; "" if it names none,
// or if its folder has only config.json.
std::string model_weights(const Job& job);

// Lines for the user about the config.json of the job's language model: its fields that have no
// effect, one line a model.
std::vector<std::string> language_model_notes(const Job& job);

// Gives tensors of transformers the names of the model's parameters, joins their parts and
// transposes them. The prefix of the family may be missing ("transformer.", "model."), and
// "module." and "_orig_mod." may precede it. Of a tied head and its embedding, one suffices.
// Buffers are dropped; other tensors stay as they are, and those with the model's own names too.
// kUsage naming `path` and the tensor if a part is missing or has another shape.
void fit_language_names(const LanguageModel& model, const std::string& path, TensorFile* file);

// read_weights(), fitted if the job's model is a language model. Errors of both.
TensorFile read_job_weights(const Job& job, const std::string& path);

// Number of tokens of the job's language model: its largest id + 1; 0 for another model.
int64_t vocabulary_of(const Job& job);

}  // namespace fleet
