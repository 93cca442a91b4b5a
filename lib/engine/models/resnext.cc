// resnext50_32x4d, resnext101_32x8d, resnext101_64x4d: Xie et al. 2016: the 3x3 convolution of a
// bottleneck is wider and in groups. wide_resnet50_2, wide_resnet101_2: Zagoruyko and Komodakis
// 2016: it is twice as wide. torchvision's names and initialisation.
#include "models/resnet.h"

namespace fleet {
namespace {

ResnetForm grouped(std::vector<int> blocks, int64_t groups, int64_t group_width) {
  return {.bottleneck = true,
          .blocks = std::move(blocks),
          .groups = groups,
          .group_width = group_width};
}

}  // namespace

FLEET_MODEL(resnext50_32x4d) { define_resnet(def, grouped({3, 4, 6, 3}, 32, 4)); }
FLEET_MODEL(resnext101_32x8d) { define_resnet(def, grouped({3, 4, 23, 3}, 32, 8)); }
FLEET_MODEL(resnext101_64x4d) { define_resnet(def, grouped({3, 4, 23, 3}, 64, 4)); }
FLEET_MODEL(wide_resnet50_2) { define_resnet(def, grouped({3, 4, 6, 3}, 1, 128)); }
FLEET_MODEL(wide_resnet101_2) { define_resnet(def, grouped({3, 4, 23, 3}, 1, 128)); }

}  // namespace fleet
