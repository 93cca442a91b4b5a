// DINOv2 (Oquab et al. 2024): vision transformers with layer scale for patches of 14 x 14, and with
// register tokens (Darcet et al. 2024), which have no positions; timm's names. Its weights have no
// head.
#include "models/vit_family.h"

namespace fleet {
namespace {

void define_dinov2(ModelDef& def, int64_t heads, int64_t registers) {
  define_vit(def, {.patch = 14,
                   .heads = heads,
                   .width = 64 * heads,
                   .image = 518,
                   .layer_scale = 1e-5,
                   .registers = registers,
                   .token_positions = registers == 0});
}

}  // namespace

FLEET_MODEL(vit_small_patch14_dinov2) { define_dinov2(def, 6, 0); }
FLEET_MODEL(vit_base_patch14_dinov2) { define_dinov2(def, 12, 0); }
FLEET_MODEL(vit_small_patch14_reg4_dinov2) { define_dinov2(def, 6, 4); }
FLEET_MODEL(vit_base_patch14_reg4_dinov2) { define_dinov2(def, 12, 4); }

}  // namespace fleet
