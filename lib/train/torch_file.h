// Files of torch.save() (.pth, .pt): a zip with a pickle and the tensors' bytes, or, before PyTorch
// 1.6, pickles with the bytes behind them. Nothing in them is executed.
#pragma once

#include <string>

#include "train/safetensors.h"

namespace fleet {

// Whether the file begins as one of these. Errors of open_regular_file().
bool is_torch_file(const std::string& path);

// The tensors of the state dict in it: of the dict that the file holds, or of the one below
// "state_dict", "model_state_dict" or "model" of that; row-major. DamagedFile where it is
// truncated, contradicts itself, or a checksum of the zip does not fit; kUsage where it holds
// something that weights do not need (code, quantized tensors, a scripted module) or no state dict.
TensorFile read_torch_file(const std::string& path);

// A file of weights: one of these, or a safetensors file (read_safetensors()).
TensorFile read_weights(const std::string& path);

}  // namespace fleet
