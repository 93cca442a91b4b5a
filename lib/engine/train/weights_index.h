// The index of weights in several files, as Hugging Face writes it: model.safetensors.index.json or
// pytorch_model.bin.index.json, {"weight_map": {"fc.weight": "model-00001-of-00002.safetensors"}}.
#pragma once

#include <functional>
#include <string>

#include "train/safetensors.h"

namespace fleet {

// Whether a file of weights that begins with these bytes (eight, or all of a shorter file) is JSON.
bool begins_like_json(std::string_view bytes);

// The tensors of all files that the index names, which are in its folder. read: reads one of them.
// kUsage naming the index if it is other JSON or names a file elsewhere; kNotFound naming the files
// that are missing; DamagedFile if a file lacks a tensor; errors of `read`.
TensorFile read_weights_index(const std::string& path,
                              const std::function<TensorFile(const std::string&)>& read);

}  // namespace fleet
