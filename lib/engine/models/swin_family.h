// Swin Transformer (Liu et al. 2021) and its second version (2022): attention within windows of an
// image's tokens, which every other layer shifts, in four stages of ever fewer and wider tokens.
#pragma once

#include <array>

#include "models/model.h"

namespace fleet {

struct SwinConfig {
  int64_t width = 96;  // first stage; each next one doubles it
  std::array<int64_t, 4> depths = {}, heads = {};
  double stochastic_depth = 0.2;  // default
  bool v2 = false;
  int64_t window = 7, image = 224;  // height and width
};

// Sets help, default image, schema and build of a classifier with torchvision's names.
void define_swin(ModelDef& def, const SwinConfig& config);

}  // namespace fleet
