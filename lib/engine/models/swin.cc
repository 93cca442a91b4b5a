// swin_t, s and b, and swin_v2_t, s and b: Swin Transformer, torchvision's names and
// initialisation.
#include "models/swin_family.h"

namespace fleet {
namespace {

SwinConfig swin_tiny() { return {.width = 96, .depths = {2, 2, 6, 2}, .heads = {3, 6, 12, 24}}; }

SwinConfig swin_small() {
  return {.width = 96, .depths = {2, 2, 18, 2}, .heads = {3, 6, 12, 24}, .stochastic_depth = 0.3};
}

SwinConfig swin_base() {
  return {.width = 128, .depths = {2, 2, 18, 2}, .heads = {4, 8, 16, 32}, .stochastic_depth = 0.5};
}

SwinConfig second_version(SwinConfig config) {
  config.v2 = true;
  config.window = 8;
  config.image = 256;
  return config;
}

}  // namespace

FLEET_MODEL(swin_t) { define_swin(def, swin_tiny()); }
FLEET_MODEL(swin_s) { define_swin(def, swin_small()); }
FLEET_MODEL(swin_b) { define_swin(def, swin_base()); }
FLEET_MODEL(swin_v2_t) { define_swin(def, second_version(swin_tiny())); }
FLEET_MODEL(swin_v2_s) { define_swin(def, second_version(swin_small())); }
FLEET_MODEL(swin_v2_b) { define_swin(def, second_version(swin_base())); }

}  // namespace fleet
