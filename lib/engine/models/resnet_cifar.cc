// resnet20: the network of He et al. 2015, section 4.2, for 32 x 32 images: 6n + 2 layers with n =
// 3. If the shape changes, the shortcut is a 1x1 convolution with batch norm (option B), as in
// tests/bench/peers/cifar10_resnet20.py; the paper's parameter-free padding is not available.
#include "models/model.h"

namespace fleet {
namespace {

VarId conv_bn(Network& network, VarId x, const std::string& conv, const std::string& bn,
              int64_t channels, int64_t kernel, int64_t stride) {
  x = network.conv2d(
      conv, x, {.channels = channels, .kernel = kernel, .stride = stride, .padding = kernel / 2});
  return network.batch_norm(bn, x);
}

VarId block(Network& network, VarId x, const std::string& name, int64_t channels, int64_t stride) {
  VarId y = network.relu(conv_bn(network, x, name + "conv1", name + "bn1", channels, 3, stride));
  y = conv_bn(network, y, name + "conv2", name + "bn2", channels, 3, 1);
  if (network.shape(x)[1] != channels) {
    x = conv_bn(network, x, name + "downsample.0", name + "downsample.1", channels, 1, stride);
  }
  return network.relu(network.add(y, x));
}

}  // namespace

FLEET_MODEL(resnet20) {
  def.help = "residual network of 20 layers for 32 x 32 images (CIFAR)";
  def.image = {3, 32, 32};
  def.schema = batch_norm_model_schema(10);
  def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
    VarId x = network.relu(conv_bn(network, image, "conv1", "bn1", 16, 3, 1));
    network.block("stem", x);
    for (int stage = 0; stage < 3; ++stage) {
      for (int i = 0; i < 3; ++i) {
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
        x = block(network, x, name + ".", 16 << stage, stage > 0 && i == 0 ? 2 : 1);
        network.block(name, x);
      }
    }
    return network.linear("fc", network.flatten(network.global_pool(x)),
                          {.features = settings.integer("num_classes")});
  });
}

}  // namespace fleet
