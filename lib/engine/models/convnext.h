// ConvNeXt networks in their sizes: one per FLEET_MODEL.
#pragma once

#include <array>
#include <cstdint>

#include "models/model.h"

namespace fleet {

struct ConvnextForm {
  std::array<int64_t, 4> channels, blocks;  // by stage
  double stochastic_depth = 0;
  // Parameters have timm's names, otherwise torchvision's.
  bool timm = false;
  // Version 2 (Woo et al. 2023): a global response norm in each block, and no scale behind it.
  bool response_norm = false;
};

void define_convnext(ModelDef& def, const ConvnextForm& form);

}  // namespace fleet
