// Residual networks of one layout: one per FLEET_MODEL.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace fleet {

struct ResnetForm {
  bool bottleneck = false;
  std::vector<int> blocks = {};  // in the four stages
  // Of a bottleneck's 3x3 convolution: its groups, and the channels of each in the first stage.
  int64_t groups = 1, group_width = 64;
  // ResNet-D (He et al. 2018): a stem of three 3x3 convolutions, and shortcuts that shrink by an
  // average; timm's names and its initial scale of zero.
  bool deep = false;
};

void define_resnet(ModelDef& def, const ResnetForm& form);

}  // namespace fleet
