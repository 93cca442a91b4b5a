// efficientnet_v2_s, m and l: Tan and Le 2021: the first stages have fused blocks; torchvision's
// names and initialisation.
#include "models/efficientnet.h"

namespace fleet {
namespace {

void define_efficientnet_v2(ModelDef& def, std::vector<EfficientnetStage> stages, double dropout,
                            int64_t image) {
  const int64_t stem = stages[0].channels;
  define_efficientnet(def, {.stages = std::move(stages),
                            .stem = stem,
                            .head = 1280,
                            .dropout = dropout,
                            .norm = {.epsilon = 1e-3},
                            .image = image});
}

constexpr bool kFusedStage = true;

}  // namespace

FLEET_MODEL(efficientnet_v2_s) {
  define_efficientnet_v2(def,
                         {{1, 3, 1, 24, 2, kFusedStage},
                          {4, 3, 2, 48, 4, kFusedStage},
                          {4, 3, 2, 64, 4, kFusedStage},
                          {4, 3, 2, 128, 6},
                          {6, 3, 1, 160, 9},
                          {6, 3, 2, 256, 15}},
                         0.2, 384);
}

FLEET_MODEL(efficientnet_v2_m) {
  define_efficientnet_v2(def,
                         {{1, 3, 1, 24, 3, kFusedStage},
                          {4, 3, 2, 48, 5, kFusedStage},
                          {4, 3, 2, 80, 5, kFusedStage},
                          {4, 3, 2, 160, 7},
                          {6, 3, 1, 176, 14},
                          {6, 3, 2, 304, 18},
                          {6, 3, 1, 512, 5}},
                         0.3, 480);
}

FLEET_MODEL(efficientnet_v2_l) {
  define_efficientnet_v2(def,
                         {{1, 3, 1, 32, 4, kFusedStage},
                          {4, 3, 2, 64, 7, kFusedStage},
                          {4, 3, 2, 96, 7, kFusedStage},
                          {4, 3, 2, 192, 10},
                          {6, 3, 1, 224, 19},
                          {6, 3, 2, 384, 25},
                          {6, 3, 1, 640, 7}},
                         0.4, 480);
}

}  // namespace fleet
