// The vision transformer (Dosovitskiy et al. 2021) and the networks that differ from it in few
// places: deit, deit3, dinov2. Each has a file, which names its sizes.
#pragma once

#include "models/model.h"

namespace fleet {

// Whose names and initial values the parameters have.
enum class VitOrigin { kTorchvision, kTimm };

struct VitConfig {
  int64_t patch = 16, layers = 12, heads = 12, width = 768;  // the MLP is 4 times as wide
  VitOrigin origin = VitOrigin::kTimm;
  int64_t image = 224;     // default height and width
  double layer_scale = 0;  // initial factors of a layer's outputs; 0: none
  int64_t registers = 0;   // tokens that nothing reads behind the last layer
  bool distilled = false;  // a second token and head; the logits are the mean of both heads'
  // Whether the class token (and the registers) have positions, too.
  bool token_positions = true;
};

// Sets help, default image, schema and build of a classifier.
void define_vit(ModelDef& def, const VitConfig& config);

}  // namespace fleet
