// DeiT (Touvron et al. 2021): vision transformers, some with a token and a head for distillation,
// and DeiT III (2022): with layer scale, and positions of the patches alone; timm's names.
#include "models/vit_family.h"

namespace fleet {
namespace {

void define_distilled(ModelDef& def, int64_t heads) {
  define_vit(def, {.heads = heads, .width = 64 * heads, .distilled = true});
}

void define_deit3(ModelDef& def, int64_t heads) {
  define_vit(def,
             {.heads = heads, .width = 64 * heads, .layer_scale = 1e-6, .token_positions = false});
}

}  // namespace

FLEET_MODEL(deit_tiny_patch16_224) { define_vit(def, {.heads = 3, .width = 192}); }
FLEET_MODEL(deit_small_patch16_224) { define_vit(def, {.heads = 6, .width = 384}); }
FLEET_MODEL(deit_base_patch16_224) { define_vit(def, {.heads = 12, .width = 768}); }
FLEET_MODEL(deit_tiny_distilled_patch16_224) { define_distilled(def, 3); }
FLEET_MODEL(deit_small_distilled_patch16_224) { define_distilled(def, 6); }
FLEET_MODEL(deit_base_distilled_patch16_224) { define_distilled(def, 12); }
FLEET_MODEL(deit3_small_patch16_224) { define_deit3(def, 6); }
FLEET_MODEL(deit3_base_patch16_224) { define_deit3(def, 12); }

}  // namespace fleet
