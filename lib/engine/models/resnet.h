// Residual networks of one layout: one per FLEET_MODEL.
#pragma once

#include <cstdint>
#include <string>
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
  // The last two stages have stride 1, and their 3x3 convolutions are dilated by 2 and 4
  // (torchvision's replace_stride_with_dilation): maps of an eighth of the image. Bottlenecks only.
  bool dilated = false;
};

void define_resnet(ModelDef& def, const ResnetForm& form);

// The outputs of the four stages of such a network without its head. prefix: starts the names of
// its layers.
std::vector<VarId> resnet_stages(Network& network, VarId image, const ResnetForm& form,
                                 const std::string& prefix, int64_t width = 64);

}  // namespace fleet
