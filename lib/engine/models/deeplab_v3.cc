// deeplabv3_resnet50, deeplabv3_resnet101, deeplabv3_mobilenet_v3_large: Chen et al. 2017, as
// torchvision's.
#include "models/segmentation.h"

namespace fleet {
namespace {

constexpr int64_t kWidth = 256;

// Atrous spatial pyramid pooling: branches that see ever larger surroundings of a pixel, and one
// that sees the mean of the map.
VarId pyramid(Network& network, const std::string& name, VarId map, double dropout) {
  const auto branch = [&](int number, int64_t kernel, int64_t dilation) {
    const std::string own = name + ".convs." + std::to_string(number);
    return conv_bn_relu(network, own + ".0", own + ".1", map,
                        {.channels = kWidth,
                         .kernel = kernel,
                         .padding = kernel / 2 * dilation,
                         .dilation = dilation});
  };
  std::vector<VarId> branches = {branch(0, 1, 1), branch(1, 3, 12), branch(2, 3, 24),
                                 branch(3, 3, 36)};
  const std::string pooled = name + ".convs.4";
  const VarId mean = conv_bn_relu(network, pooled + ".1", pooled + ".2", network.global_pool(map),
                                  {.channels = kWidth, .kernel = 1});
  branches.push_back(resized_like(network, mean, map));
  const VarId x = conv_bn_relu(network, name + ".project.0", name + ".project.1",
                               network.concat(branches), {.channels = kWidth, .kernel = 1});
  return network.block(name, network.dropout(x, dropout));
}

VarId deeplab_head(Network& network, VarId map, int64_t classes, double dropout) {
  const VarId x = pyramid(network, "classifier.0", map, dropout);
  const VarId y = conv_bn_relu(network, "classifier.1", "classifier.2", x,
                               {.channels = kWidth, .kernel = 3, .padding = 1});
  return network.block("classifier", pixel_classes(network, "classifier.4", y, classes));
}

void define_deeplab(ModelDef& def, const Backbone& backbone) {
  define_segmentation(def, "DeepLab version 3: a class of each pixel, torchvision's names",
                      backbone, deeplab_head, /*dropout=*/0.5);
}

void define_deeplab(ModelDef& def, const std::vector<int>& blocks) {
  define_deeplab(def, [blocks](Network& network, VarId image) {
    return dilated_resnet_maps(network, image, blocks);
  });
}

}  // namespace

FLEET_MODEL(deeplabv3_resnet50) { define_deeplab(def, std::vector<int>{3, 4, 6, 3}); }
FLEET_MODEL(deeplabv3_resnet101) { define_deeplab(def, std::vector<int>{3, 4, 23, 3}); }
FLEET_MODEL(deeplabv3_mobilenet_v3_large) { define_deeplab(def, dilated_mobilenet_maps); }

}  // namespace fleet
