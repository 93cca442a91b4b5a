// Vision transformers: vit_b_16, b_32, l_16 and l_32 of torchvision, with its names and
// initialisation, and vit_*_patch16_224 of timm, with those of timm.
#include "models/vit_family.h"

namespace fleet {
namespace {

void define_torchvisions(ModelDef& def, VitConfig config) {
  config.origin = VitOrigin::kTorchvision;
  define_vit(def, config);
}

}  // namespace

FLEET_MODEL(vit_b_16) { define_torchvisions(def, {.patch = 16}); }
FLEET_MODEL(vit_b_32) { define_torchvisions(def, {.patch = 32}); }
FLEET_MODEL(vit_l_16) {
  define_torchvisions(def, {.patch = 16, .layers = 24, .heads = 16, .width = 1024});
}
FLEET_MODEL(vit_l_32) {
  define_torchvisions(def, {.patch = 32, .layers = 24, .heads = 16, .width = 1024});
}

FLEET_MODEL(vit_tiny_patch16_224) { define_vit(def, {.heads = 3, .width = 192}); }
FLEET_MODEL(vit_small_patch16_224) { define_vit(def, {.heads = 6, .width = 384}); }
FLEET_MODEL(vit_base_patch16_224) { define_vit(def, {.heads = 12, .width = 768}); }

}  // namespace fleet
