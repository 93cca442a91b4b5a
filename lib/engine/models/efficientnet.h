// EfficientNets with torchvision's names: one per FLEET_MODEL.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace fleet {

struct EfficientnetStage {
  int64_t expand, kernel, stride, channels;
  int repeats;
  // The expansion and the depthwise convolution are one, and nothing is squeezed.
  bool fused = false;
};

struct EfficientnetForm {
  std::vector<EfficientnetStage> stages;
  int64_t stem = 32;            // channels
  int64_t head = 0;             // channels; 0: 4 times those of the last stage
  double width = 1, depth = 1;  // factors for channels and repeats
  double dropout = 0.2;
  BatchNorm norm = {};
  int64_t image = 224;
};

void define_efficientnet(ModelDef& def, const EfficientnetForm& form);

}  // namespace fleet
