// Files of torch.save() (.pth, .pt): a zip with a pickle and the tensors' bytes, or, before PyTorch
// 1.6, pickles with the bytes behind them. Nothing in them is executed.
#pragma once

#include <string>

#include "train/safetensors.h"

namespace fleet {

// Whether the file begins like one of these. Errors of open_regular_file().
bool is_torch_file(const std::string& path);

struct TorchFileOptions {
  bool average = false;  // the average of the weights, below "state_dict_ema" or "model_ema"
  bool values = true;    // false: names, shapes and types; tensors have no values
};

// The tensors of the state dict in it: the dict of the file, or the one below its key
// "state_dict", "model_state_dict" or "model"; row-major. The options of a training of timm, an
// argparse.Namespace below "args", become the metadata "pretrained_cfg"
// (train/pretrained_record.h). DamagedFile if the file is truncated, contradicts itself, or does
// not match a checksum of the zip; kUsage if it contains something that weights do not need (code,
// quantized tensors, a scripted module) or no state dict, or no average.
TensorFile read_torch_file(const std::string& path, const TorchFileOptions& options = {});

// Reads a file of weights: one of these, a safetensors file (read_safetensors()), or the index of
// several of them (read_weights_index()).
TensorFile read_weights(const std::string& path, bool average = false);
// The same, but values of safetensors files are read when they are needed (open_safetensors()).
TensorFile open_weights(const std::string& path, bool average = false);
// Names, shapes, types and metadata only.
TensorFile open_outline(const std::string& path);

}  // namespace fleet
