// resnet18d to resnet152d: the form D of He et al. 2018, with timm's names.
#include "models/resnet.h"

namespace fleet {
namespace {

ResnetForm form_d(bool bottleneck, std::vector<int> blocks) {
  return {.bottleneck = bottleneck, .blocks = std::move(blocks), .deep = true};
}

}  // namespace

FLEET_MODEL(resnet18d) { define_resnet(def, form_d(false, {2, 2, 2, 2})); }
FLEET_MODEL(resnet34d) { define_resnet(def, form_d(false, {3, 4, 6, 3})); }
FLEET_MODEL(resnet26d) { define_resnet(def, form_d(true, {2, 2, 2, 2})); }
FLEET_MODEL(resnet50d) { define_resnet(def, form_d(true, {3, 4, 6, 3})); }
FLEET_MODEL(resnet101d) { define_resnet(def, form_d(true, {3, 4, 23, 3})); }
FLEET_MODEL(resnet152d) { define_resnet(def, form_d(true, {3, 8, 36, 3})); }

}  // namespace fleet
