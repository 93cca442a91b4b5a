// fcn_resnet50, fcn_resnet101: Long et al. 2015, as torchvision's.
#include "models/segmentation.h"

namespace fleet {
namespace {

void define_fcn(ModelDef& def, const std::vector<int>& blocks) {
  define_segmentation(
      def, "fully convolutional network: a class of each pixel, torchvision's names",
      [blocks](Network& network, VarId image) {
        return dilated_resnet_maps(network, image, blocks);
      },
      [](Network& network, VarId map, int64_t classes, double dropout) {
        return fcn_head(network, "classifier", map, classes, dropout);
      },
      /*dropout=*/0.1);
}

}  // namespace

FLEET_MODEL(fcn_resnet50) { define_fcn(def, {3, 4, 6, 3}); }
FLEET_MODEL(fcn_resnet101) { define_fcn(def, {3, 4, 23, 3}); }

}  // namespace fleet
