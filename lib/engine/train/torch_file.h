// Files of torch.save() (.pth, .pt): a zip with a pickle and the tensors' bytes, or, before PyTorch
// 1.6, pickles with the bytes behind them. Nothing in them is executed.
#pragma once

#include <string>

#include "train/safetensors.h"

namespace fleet {

// Whether the file begins like one of these. Errors of open_regular_file().
bool is_torch_file(const std::string& path);

// The tensors of the state dict in it: the dict of the file, or the one below its key
// "state_dict", "model_state_dict" or "model"; row-major. DamagedFile if the file is truncated,
// contradicts itself, or does not match a checksum of the zip; kUsage if it contains something that
// weights do not need (code, quantized tensors, a scripted module) or no state dict.
TensorFile read_torch_file(const std::string& path);

// Reads a file of weights: one of these, a safetensors file (read_safetensors()), or the index of
// several of them (read_weights_index()).
TensorFile read_weights(const std::string& path);
// The same, but values of safetensors files are read when they are needed (open_safetensors()).
TensorFile open_weights(const std::string& path);

}  // namespace fleet
