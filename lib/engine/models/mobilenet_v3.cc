// mobilenet_v3_small, mobilenet_v3_large: Howard et al. 2019; torchvision's names and
// initialisation.
#include "models/mobilenet_v3.h"

#include "models/model.h"
#include "models/network.h"

namespace fleet {
namespace {

struct Bottleneck {
  int64_t kernel, expanded, channels;
  bool squeezes, hard;  // squeeze and excitation; hardswish, else relu
  int64_t stride;
  int64_t dilation = 1;
};
struct Form {
  std::vector<Bottleneck> blocks;
  int64_t last;  // features of the classifier's hidden layer
};

const Form& small() {
  static const Form form{{{3, 16, 16, true, false, 2},
                          {3, 72, 24, false, false, 2},
                          {3, 88, 24, false, false, 1},
                          {5, 96, 40, true, true, 2},
                          {5, 240, 40, true, true, 1},
                          {5, 240, 40, true, true, 1},
                          {5, 120, 48, true, true, 1},
                          {5, 144, 48, true, true, 1},
                          {5, 288, 96, true, true, 2},
                          {5, 576, 96, true, true, 1},
                          {5, 576, 96, true, true, 1}},
                         1024};
  return form;
}

const Form& large() {
  static const Form form{{{3, 16, 16, false, false, 1},
                          {3, 64, 24, false, false, 2},
                          {3, 72, 24, false, false, 1},
                          {5, 72, 40, true, false, 2},
                          {5, 120, 40, true, false, 1},
                          {5, 120, 40, true, false, 1},
                          {3, 240, 80, false, true, 2},
                          {3, 200, 80, false, true, 1},
                          {3, 184, 80, false, true, 1},
                          {3, 184, 80, false, true, 1},
                          {3, 480, 112, true, true, 1},
                          {3, 672, 112, true, true, 1},
                          {5, 672, 160, true, true, 2},
                          {5, 960, 160, true, true, 1},
                          {5, 960, 160, true, true, 1}},
                         1280};
  return form;
}

class MobilenetV3Builder {
 public:
  MobilenetV3Builder(Network& network, double width) : net_(network), width_(width) {}

  int64_t wide(int64_t channels) const {
    return round_channels(static_cast<double>(channels) * width_);
  }

  // torchvision's Conv2dNormActivation: NAME.0, NAME.1 and an activation ("": none).
  VarId conv_bn(VarId x, const std::string& name, const Conv2d& layer,
                const std::string& activation) {
    x = net_.conv2d(name + ".0", x, layer);
    x = net_.batch_norm(name + ".1", x, {.epsilon = 1e-3, .momentum = 0.01});
    return activation.empty() ? x : net_.activation(activation, x);
  }

  VarId bottleneck(VarId x, const std::string& name, const Bottleneck& block) {
    const std::string activation = block.hard ? "hardswish" : "relu";
    const int64_t inputs = net_.shape(x)[1], expanded = wide(block.expanded);
    const int64_t channels = wide(block.channels);
    int number = 0;
    const auto next = [&] { return name + ".block." + std::to_string(number++); };
    VarId y = x;
    if (expanded != inputs) {
      y = conv_bn(y, next(), {.channels = expanded, .kernel = 1}, activation);
    }
    y = conv_bn(y, next(),
                {.channels = expanded,
                 .kernel = block.kernel,
                 .stride = block.stride,
                 .padding = block.kernel / 2 * block.dilation,
                 .dilation = block.dilation,
                 .groups = expanded},
                activation);
    if (block.squeezes) {
      const int64_t quarter = expanded / 4;
      const int64_t squeezed = round_channels(static_cast<double>(quarter));
      y = net_.squeeze_excitation(next(), y, squeezed, "relu", "hardsigmoid");
    }
    y = conv_bn(y, next(), {.channels = channels, .kernel = 1}, "");
    const bool residual = block.stride == 1 && inputs == channels;
    return net_.block(name, residual ? net_.add(y, x) : y);
  }

 private:
  Network& net_;
  const double width_;
};

// The outputs of torchvision's `features`, whose names begin with `prefix`. dilated: the blocks
// from the last stride on have stride 1, and their convolutions are dilated by 2.
std::vector<VarId> features_of(Network& network, VarId image, const Form& form, double width,
                               const std::string& prefix, bool dilated) {
  MobilenetV3Builder builder(network, width);
  const auto name = [&](size_t number) { return prefix + std::to_string(number); };
  VarId x = builder.conv_bn(image, name(0),
                            {.channels = builder.wide(16), .kernel = 3, .stride = 2, .padding = 1},
                            "hardswish");
  std::vector<VarId> outputs = {network.block(name(0), x)};
  constexpr size_t kLastStage = 3;  // blocks
  for (size_t i = 0; i < form.blocks.size(); ++i) {
    Bottleneck block = form.blocks[i];
    if (dilated && i + kLastStage >= form.blocks.size()) {
      block.stride = 1;
      block.dilation = 2;
    }
    x = builder.bottleneck(x, name(outputs.size()), block);
    outputs.push_back(x);
  }
  x = builder.conv_bn(x, name(outputs.size()), {.channels = 6 * network.shape(x)[1], .kernel = 1},
                      "hardswish");
  outputs.push_back(network.block(name(outputs.size()), x));
  return outputs;
}

VarId build(Network& network, VarId image, const Settings& settings, const Form& form) {
  const double width = settings.number("width");
  VarId x = features_of(network, image, form, width, "features.", false).back();
  const int64_t hidden = MobilenetV3Builder(network, width).wide(form.last);
  x = network.linear("classifier.0", network.flatten(network.global_pool(x)),
                     {.features = hidden, .init = WeightInit::kNormal001});
  x = network.dropout(network.activation("hardswish", x), settings.number("dropout"));
  return network.linear(
      "classifier.3", x,
      {.features = settings.integer("num_classes"), .init = WeightInit::kNormal001});
}

void define_mobilenet_v3(ModelDef& def, const Form& form) {
  def.help = "MobileNet version 3, torchvision's names";
  def.schema = batch_norm_model_schema()
                   .number("width", 1, 0.05, 8, "factor for the channels of every layer")
                   .number("dropout", 0.2, 0, 0.99, "dropout rate of the last layer's inputs");
  def.build = image_classifier([&form](Network& network, VarId image, const Settings& settings) {
    return build(network, image, settings, form);
  });
}

}  // namespace

std::vector<VarId> dilated_mobilenet_v3_large(Network& network, VarId image,
                                              const std::string& prefix) {
  return features_of(network, image, large(), 1, prefix, true);
}

FLEET_MODEL(mobilenet_v3_small) { define_mobilenet_v3(def, small()); }
FLEET_MODEL(mobilenet_v3_large) { define_mobilenet_v3(def, large()); }

}  // namespace fleet
