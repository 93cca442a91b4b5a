// googlenet: Szegedy et al. 2014 with batch norm, torchvision's names and initialisation. As in
// torchvision, the third branch of an inception is a 3x3 convolution instead of the paper's 5x5,
// and there are no auxiliary classifiers (aux_logits=False).
#include "models/model.h"

namespace fleet {
namespace {

// Channels of the branches: 1x1; reduced and 3x3; reduced and 5x5; after the pooling.
struct Inception {
  const char* name;
  int64_t one, reduced_three, three, reduced_five, five, pooled;
  bool pools_before;  // the first of its stage
};
constexpr Inception kInceptions[] = {{"inception3a", 64, 96, 128, 16, 32, 32, false},
                                     {"inception3b", 128, 128, 192, 32, 96, 64, false},
                                     {"inception4a", 192, 96, 208, 16, 48, 64, true},
                                     {"inception4b", 160, 112, 224, 24, 64, 64, false},
                                     {"inception4c", 128, 128, 256, 24, 64, 64, false},
                                     {"inception4d", 112, 144, 288, 32, 64, 64, false},
                                     {"inception4e", 256, 160, 320, 32, 128, 128, false},
                                     {"inception5a", 256, 160, 320, 32, 128, 128, true},
                                     {"inception5b", 384, 192, 384, 48, 128, 128, false}};

VarId basic_conv(Network& network, VarId x, const std::string& name, int64_t channels,
                 int64_t kernel, int64_t stride = 1) {
  x = network.conv2d(name + ".conv", x,
                     {.channels = channels,
                      .kernel = kernel,
                      .stride = stride,
                      .padding = kernel / 2,
                      .init = WeightInit::kNormal001});
  return network.relu(network.batch_norm(name + ".bn", x, {.epsilon = 1e-3}));
}

VarId inception(Network& network, VarId x, const Inception& block) {
  const std::string name = std::string(block.name) + ".branch";
  const VarId one = basic_conv(network, x, name + "1", block.one, 1);
  VarId three = basic_conv(network, x, name + "2.0", block.reduced_three, 1);
  three = basic_conv(network, three, name + "2.1", block.three, 3);
  VarId five = basic_conv(network, x, name + "3.0", block.reduced_five, 1);
  five = basic_conv(network, five, name + "3.1", block.five, 3);
  VarId pooled = network.pool(x, {.kernel = 3, .stride = 1, .padding = 1, .ceil_mode = true});
  pooled = basic_conv(network, pooled, name + "4.1", block.pooled, 1);
  return network.block(block.name, network.concat({one, three, five, pooled}));
}

}  // namespace

FLEET_MODEL(googlenet) {
  def.help = "GoogLeNet without auxiliary classifiers, torchvision's names";
  def.schema = batch_norm_model_schema().number("dropout", 0.2, 0, 0.99,
                                                "dropout rate of the last layer's inputs");
  def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
    const Pool2d halve = {.kernel = 3, .stride = 2, .ceil_mode = true};
    VarId x = network.pool(basic_conv(network, image, "conv1", 64, 7, 2), halve);
    x = basic_conv(network, x, "conv2", 64, 1);
    x = network.block("stem", network.pool(basic_conv(network, x, "conv3", 192, 3), halve));
    for (const Inception& block : kInceptions) {
      const bool last = std::string(block.name) == "inception5a";
      if (block.pools_before) {
        x = network.pool(x, {.kernel = last ? 2 : 3, .stride = 2, .ceil_mode = true});
      }
      x = inception(network, x, block);
    }
    x = network.dropout(network.flatten(network.global_pool(x)), settings.number("dropout"));
    return network.linear(
        "fc", x, {.features = settings.integer("num_classes"), .init = WeightInit::kNormal001});
  });
}

}  // namespace fleet
