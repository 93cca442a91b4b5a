// mobilenet_v4_conv_small and medium: Qin et al. 2024: inverted bottlenecks with a depthwise
// convolution in front of the expansion, behind it, both or none; timm's names.
#include "models/model.h"
#include "models/network.h"

namespace fleet {
namespace {

struct V4Block {
  enum Kind { kConv, kFused, kInverted } kind;
  // Kernels: of the convolution (kConv, kFused), or of the depthwise ones in front of the expansion
  // and behind it, 0 for none.
  int64_t start, middle;
  int64_t stride, expand, channels;
};
using V4Stages = std::vector<std::vector<V4Block>>;

V4Block v4_conv(int64_t kernel, int64_t stride, int64_t channels) {
  return {V4Block::kConv, kernel, 0, stride, 1, channels};
}
V4Block v4_fused(int64_t kernel, int64_t stride, int64_t expand, int64_t channels) {
  return {V4Block::kFused, kernel, 0, stride, expand, channels};
}
V4Block v4_inverted(int64_t start, int64_t middle, int64_t stride, int64_t expand,
                    int64_t channels) {
  return {V4Block::kInverted, start, middle, stride, expand, channels};
}

const V4Stages& v4_small() {
  static const V4Stages stages = {
      {v4_conv(3, 2, 32), v4_conv(1, 1, 32)},
      {v4_conv(3, 2, 96), v4_conv(1, 1, 64)},
      {v4_inverted(5, 5, 2, 3, 96), v4_inverted(0, 3, 1, 2, 96), v4_inverted(0, 3, 1, 2, 96),
       v4_inverted(0, 3, 1, 2, 96), v4_inverted(0, 3, 1, 2, 96), v4_inverted(3, 0, 1, 4, 96)},
      {v4_inverted(3, 3, 2, 6, 128), v4_inverted(5, 5, 1, 4, 128), v4_inverted(0, 5, 1, 4, 128),
       v4_inverted(0, 5, 1, 3, 128), v4_inverted(0, 3, 1, 4, 128), v4_inverted(0, 3, 1, 4, 128)},
      {v4_conv(1, 1, 960)}};
  return stages;
}

const V4Stages& v4_medium() {
  static const V4Stages stages = {
      {v4_fused(3, 2, 4, 48)},
      {v4_inverted(3, 5, 2, 4, 80), v4_inverted(3, 3, 1, 2, 80)},
      {v4_inverted(3, 5, 2, 6, 160), v4_inverted(3, 3, 1, 4, 160), v4_inverted(3, 3, 1, 4, 160),
       v4_inverted(3, 5, 1, 4, 160), v4_inverted(3, 3, 1, 4, 160), v4_inverted(3, 0, 1, 4, 160),
       v4_inverted(0, 0, 1, 2, 160), v4_inverted(3, 0, 1, 4, 160)},
      {v4_inverted(5, 5, 2, 6, 256), v4_inverted(5, 5, 1, 4, 256), v4_inverted(3, 5, 1, 4, 256),
       v4_inverted(3, 5, 1, 4, 256), v4_inverted(0, 0, 1, 4, 256), v4_inverted(3, 0, 1, 4, 256),
       v4_inverted(3, 5, 1, 2, 256), v4_inverted(5, 5, 1, 4, 256), v4_inverted(0, 0, 1, 4, 256),
       v4_inverted(0, 0, 1, 4, 256), v4_inverted(5, 0, 1, 2, 256)},
      {v4_conv(1, 1, 960)}};
  return stages;
}

class MobilenetV4Builder {
 public:
  MobilenetV4Builder(Network& network, const V4Stages& stages, double stochastic_depth)
      : net_(network), stochastic_depth_(stochastic_depth) {
    for (const auto& stage : stages) blocks_ += static_cast<int>(stage.size());
  }

  // `bn`: the name of its batch norm.
  VarId conv_bn(VarId x, const std::string& name, const std::string& bn, Conv2d layer,
                bool active = true) {
    layer.padding = layer.kernel / 2;
    x = net_.batch_norm(bn, net_.conv2d(name, x, layer));
    return active ? net_.relu(x) : x;
  }

  VarId block(VarId x, const std::string& name, const V4Block& block) {
    const int64_t inputs = net_.shape(x)[1];
    const double drop = stochastic_depth_ * made_++ / blocks_;
    if (block.kind == V4Block::kConv) {
      return net_.block(
          name,
          conv_bn(x, name + ".conv", name + ".bn1",
                  {.channels = block.channels, .kernel = block.start, .stride = block.stride}));
    }
    const VarId y = block.kind == V4Block::kFused ? edge(x, name, block) : uib(x, name, block);
    const bool residual = block.stride == 1 && inputs == block.channels;
    return net_.block(name, residual ? net_.add(net_.drop_path(y, drop), x) : y);
  }

 private:
  VarId edge(VarId x, const std::string& name, const V4Block& block) {
    const int64_t expanded = expanded_channels(x, block);
    x = conv_bn(x, name + ".conv_exp", name + ".bn1",
                {.channels = expanded, .kernel = block.start, .stride = block.stride});
    return conv_bn(x, name + ".conv_pwl", name + ".bn2", {.channels = block.channels, .kernel = 1},
                   /*active=*/false);
  }

  // NAME.LAYER.conv and NAME.LAYER.bn of a universal inverted bottleneck.
  VarId uib(VarId x, const std::string& name, const V4Block& block) {
    const int64_t expanded = expanded_channels(x, block);
    const auto add = [&](const char* layer, const Conv2d& convolution, bool active) {
      const std::string prefix = name + layer;
      x = conv_bn(x, prefix + ".conv", prefix + ".bn", convolution, active);
    };
    const auto add_depthwise = [&](const char* layer, int64_t kernel, int64_t stride, bool active) {
      const int64_t channels = net_.shape(x)[1];
      add(layer, {.channels = channels, .kernel = kernel, .stride = stride, .groups = channels},
          active);
    };
    if (block.start > 0) {
      add_depthwise(".dw_start", block.start, block.middle > 0 ? 1 : block.stride, false);
    }
    add(".pw_exp", {.channels = expanded, .kernel = 1}, true);
    if (block.middle > 0) add_depthwise(".dw_mid", block.middle, block.stride, true);
    add(".pw_proj", {.channels = block.channels, .kernel = 1}, false);
    return x;
  }

  int64_t expanded_channels(VarId x, const V4Block& block) const {
    return round_channels(static_cast<double>(net_.shape(x)[1] * block.expand));
  }

  Network& net_;
  const double stochastic_depth_;
  int blocks_ = 0, made_ = 0;
};

VarId build(Network& network, VarId image, const Settings& settings, const V4Stages& stages) {
  MobilenetV4Builder builder(network, stages, settings.number("stochastic_depth"));
  VarId x = builder.conv_bn(image, "conv_stem", "bn1", {.channels = 32, .kernel = 3, .stride = 2});
  network.block("stem", x);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (size_t i = 0; i < stages[stage].size(); ++i) {
      const std::string name = "blocks." + std::to_string(stage) + "." + std::to_string(i);
      x = builder.block(x, name, stages[stage][i]);
    }
  }
  x = builder.conv_bn(network.global_pool(x), "conv_head", "norm_head",
                      {.channels = 1280, .kernel = 1});
  x = network.dropout(network.flatten(x), settings.number("dropout"));
  return network.linear(
      "classifier", x,
      {.features = settings.integer("num_classes"), .init = WeightInit::kUniformFanOut});
}

void define_mobilenet_v4(ModelDef& def, const V4Stages& stages) {
  def.help = "MobileNet version 4, timm's names";
  def.schema =
      batch_norm_model_schema()
          .number("dropout", 0.2, 0, 0.99, "dropout rate of the last layer's inputs")
          .number("stochastic_depth", 0, 0, 0.99,
                  "probability that a sample skips the last block; lower for earlier blocks");
  def.build = image_classifier([&stages](Network& network, VarId image, const Settings& settings) {
    return build(network, image, settings, stages);
  });
}

}  // namespace

FLEET_MODEL(mobilenet_v4_conv_small) { define_mobilenet_v4(def, v4_small()); }
FLEET_MODEL(mobilenet_v4_conv_medium) { define_mobilenet_v4(def, v4_medium()); }

}  // namespace fleet
