// Weights of a classifier for the backbone of another network.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/program.h"
#include "train/safetensors.h"

namespace fleet {

struct BackboneFit {
  std::vector<std::string> lines;  // about what changed
  std::set<std::string> skipped;   // of `vars`: they keep their initial values
};

// If the network has a part "backbone." and the file is a classifier that fits it (torchvision's
// names, with or without "features."), renames its tensors and removes those of its head.
BackboneFit fit_backbone(const std::vector<const Var*>& vars, TensorFile* file);

}  // namespace fleet
