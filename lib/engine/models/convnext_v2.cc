// convnext_v2_atto to large: Woo et al. 2023, with timm's names.
#include "models/convnext.h"

namespace fleet {
namespace {

void define_convnext_v2(ModelDef& def, std::array<int64_t, 4> channels,
                        std::array<int64_t, 4> blocks, double stochastic_depth) {
  define_convnext(def, {.channels = channels,
                        .blocks = blocks,
                        .stochastic_depth = stochastic_depth,
                        .timm = true,
                        .response_norm = true});
}

}  // namespace

FLEET_MODEL(convnext_v2_atto) { define_convnext_v2(def, {40, 80, 160, 320}, {2, 2, 6, 2}, 0); }
FLEET_MODEL(convnext_v2_femto) { define_convnext_v2(def, {48, 96, 192, 384}, {2, 2, 6, 2}, 0); }
FLEET_MODEL(convnext_v2_pico) { define_convnext_v2(def, {64, 128, 256, 512}, {2, 2, 6, 2}, 0); }
FLEET_MODEL(convnext_v2_nano) { define_convnext_v2(def, {80, 160, 320, 640}, {2, 2, 8, 2}, 0.1); }
FLEET_MODEL(convnext_v2_tiny) { define_convnext_v2(def, {96, 192, 384, 768}, {3, 3, 9, 3}, 0.2); }
FLEET_MODEL(convnext_v2_base) {
  define_convnext_v2(def, {128, 256, 512, 1024}, {3, 3, 27, 3}, 0.1);
}
FLEET_MODEL(convnext_v2_large) {
  define_convnext_v2(def, {192, 384, 768, 1536}, {3, 3, 27, 3}, 0.1);
}

}  // namespace fleet
