// Recognizes a network by the names and shapes of its weights.
#pragma once

#include <string>

#include "base/config.h"
#include "graph/program.h"
#include "train/safetensors.h"

namespace fleet {

// The model whose tensors the file has, under any program's names (models/weight_layout.h); the
// last layer may have other classes, and positions, windows and patches may be of another size. ""
// if none fits. kUsage if it has patches or windows of a size that networks cannot have.
std::string network_of_weights(const TensorFile& file);

// The parameters and statistics of a classifier of images. settings: the model's; null: its
// defaults. image: its channels, height and width; empty: the model's.
Program network_program(const std::string& model, const Settings* settings = nullptr,
                        const Shape& image = {});

}  // namespace fleet
