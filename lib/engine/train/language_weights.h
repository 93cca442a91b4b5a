// Weights of language models under the names of Hugging Face's transformers.
#pragma once

#include <cstdint>
#include <set>
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
// transposes them. The prefix of the family may be missing ("transformer.", "bert."), and "module."
// and "_orig_mod." may precede it. Of a tied head and its embedding, one suffices. Buffers are
// dropped; other tensors stay as they are, and those with the model's own names too. kUsage naming
// `path` and the tensor if a part of several is missing or has another shape. outputs: those
// that the network has (weight_parts()); null: all.
void fit_language_names(const LanguageModel& model, const std::string& path, TensorFile* file,
                        const std::set<std::string>* outputs = nullptr);

// How a file of weights and the heads of a job's network differ.
struct HeadWeights {
  std::set<std::string> missing;   // parameters of heads that the file lacks
  std::set<std::string> unused;    // parameters of heads that the network lacks
  std::vector<std::string> lines;  // about content that the job does not use
};

// The parameters of heads that the model has and the network of the job's task lacks, under our
// names and transformers'; none if the model is not a language model.
std::set<std::string> unused_heads(const Job& job);

// read_weights(), fitted if the job's model is a language model: then content that an encoder's
// network does not have, such as the head of another task, is left out. heads: may be null. Errors
// of both.
TensorFile read_job_weights(const Job& job, const std::string& path, HeadWeights* heads = nullptr);
// Like read_job_weights(), for names, shapes and types: uses open_weights().
TensorFile open_job_weights(const Job& job, const std::string& path, HeadWeights* heads = nullptr);

// Number of tokens of the job's language model: its largest id + 1. Of a model with tables of ids,
// model.ids, unless parameter servers hold them. 0 for another model.
int64_t vocabulary_of(const Job& job);

}  // namespace fleet
