// convnext_atto, femto, pico and nano: ConvNeXt in timm's small sizes, with timm's names. timm
// stores the products of a block as convolutions of 1 x 1, here they are matrices.
#include "models/convnext.h"

namespace fleet {
namespace {

ConvnextForm in_size(std::array<int64_t, 4> channels, std::array<int64_t, 4> blocks) {
  return {.channels = channels, .blocks = blocks, .timm = true};
}

}  // namespace

FLEET_MODEL(convnext_atto) { define_convnext(def, in_size({40, 80, 160, 320}, {2, 2, 6, 2})); }
FLEET_MODEL(convnext_femto) { define_convnext(def, in_size({48, 96, 192, 384}, {2, 2, 6, 2})); }
FLEET_MODEL(convnext_pico) { define_convnext(def, in_size({64, 128, 256, 512}, {2, 2, 6, 2})); }
FLEET_MODEL(convnext_nano) { define_convnext(def, in_size({80, 160, 320, 640}, {2, 2, 8, 2})); }

}  // namespace fleet
