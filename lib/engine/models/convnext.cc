// convnext_tiny, small, base and large: Liu et al. 2022: depthwise convolutions of 7 x 7, layer
// norm over channels, and a scale for the channels of each block; torchvision's names and
// initialisation.
#include <array>

#include "models/model.h"

namespace fleet {
namespace {

struct Widths {
  std::array<int64_t, 4> channels, blocks;
  double stochastic_depth;
};

class ConvnextBuilder {
 public:
  ConvnextBuilder(Network& network, const Widths& widths, double stochastic_depth)
      : net_(network), stochastic_depth_(stochastic_depth) {
    for (const int64_t blocks : widths.blocks) blocks_ += blocks;
  }

  // A convolution over non-overlapping patches of kernel x kernel pixels.
  VarId patches(VarId x, const std::string& name, int64_t channels, int64_t kernel) {
    return net_.conv2d(name, x,
                       {.channels = channels,
                        .kernel = kernel,
                        .stride = kernel,
                        .bias = true,
                        .init = WeightInit::kNormal002});
  }

  // Normalises N, C, H, W over the channels.
  VarId norm(VarId x, const std::string& name) {
    return net_.transpose(net_.layer_norm(name, net_.transpose(x, {0, 2, 3, 1}), kNorm),
                          {0, 3, 1, 2});
  }

  VarId block(VarId x, const std::string& name) {
    const int64_t channels = net_.shape(x)[1];
    VarId y = net_.conv2d(name + ".block.0", x,
                          {.channels = channels,
                           .kernel = 7,
                           .padding = 3,
                           .groups = channels,
                           .bias = true,
                           .init = WeightInit::kNormal002});
    y = net_.layer_norm(name + ".block.2", net_.transpose(y, {0, 2, 3, 1}), kNorm);
    y = net_.linear(name + ".block.3", y,
                    {.features = 4 * channels, .init = WeightInit::kNormal002});
    y = net_.linear(name + ".block.5", net_.activation("gelu", y),
                    {.features = channels, .init = WeightInit::kNormal002});
    const VarId scale =
        net_.parameter(name + ".layer_scale", {channels, 1, 1}, init::constant(1e-6));
    y = net_.apply("elementwise_mul", {net_.transpose(y, {0, 3, 1, 2}), scale},
                   {{"axis", int64_t{1}}});
    const double drop =
        stochastic_depth_ * static_cast<double>(made_++) / static_cast<double>(blocks_ - 1);
    return net_.block(name, net_.add(net_.drop_path(y, drop), x));
  }

  static constexpr LayerNorm kNorm{.epsilon = 1e-6};

 private:
  Network& net_;
  const double stochastic_depth_;
  int64_t blocks_ = 0, made_ = 0;
};

void define_convnext(ModelDef& def, const Widths& widths) {
  def.help = "ConvNeXt, torchvision's names";
  def.schema = model_schema().number(
      "stochastic_depth", widths.stochastic_depth, 0, 0.99,
      "probability that a sample skips the last block; lower for earlier blocks");
  def.build = image_classifier([widths](Network& network, VarId image, const Settings& settings) {
    ConvnextBuilder builder(network, widths, settings.number("stochastic_depth"));
    VarId x =
        builder.norm(builder.patches(image, "features.0.0", widths.channels[0], 4), "features.0.1");
    network.block("features.0", x);
    for (int stage = 0; stage < 4; ++stage) {
      if (stage > 0) {
        const std::string name = "features." + std::to_string(2 * stage);
        x = builder.patches(builder.norm(x, name + ".0"), name + ".1", widths.channels[stage], 2);
        network.block(name, x);
      }
      const std::string name = "features." + std::to_string(2 * stage + 1) + ".";
      for (int64_t i = 0; i < widths.blocks[stage]; ++i) {
        x = builder.block(x, name + std::to_string(i));
      }
    }
    x = network.layer_norm("classifier.0", network.flatten(network.global_pool(x)),
                           ConvnextBuilder::kNorm);
    return network.linear(
        "classifier.2", x,
        {.features = settings.integer("num_classes"), .init = WeightInit::kNormal002});
  });
}

}  // namespace

FLEET_MODEL(convnext_tiny) { define_convnext(def, {{96, 192, 384, 768}, {3, 3, 9, 3}, 0.1}); }
FLEET_MODEL(convnext_small) { define_convnext(def, {{96, 192, 384, 768}, {3, 3, 27, 3}, 0.4}); }
FLEET_MODEL(convnext_base) { define_convnext(def, {{128, 256, 512, 1024}, {3, 3, 27, 3}, 0.5}); }
FLEET_MODEL(convnext_large) { define_convnext(def, {{192, 384, 768, 1536}, {3, 3, 27, 3}, 0.5}); }

}  // namespace fleet
