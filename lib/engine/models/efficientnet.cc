// efficientnet_b0 to b7: Tan and Le 2019; torchvision's names and initialisation.
#include "models/efficientnet.h"

#include <cmath>

#include "models/network.h"

namespace fleet {
namespace {

class EfficientnetBuilder {
 public:
  EfficientnetBuilder(Network& network, const EfficientnetForm& form, const Settings& settings)
      : net_(network),
        form_(form),
        settings_(settings),
        same_padding_(settings.boolean("same_padding")) {
    for (const EfficientnetStage& stage : form.stages) blocks_ += repeats(stage);
  }

  VarId build(VarId image) {
    VarId x =
        conv_bn(image, "features.0", {.channels = wide(form_.stem), .kernel = 3, .stride = 2});
    net_.block("features.0", x);
    int number = 1;
    for (const EfficientnetStage& stage : form_.stages) {
      const std::string name = "features." + std::to_string(number++) + ".";
      for (int i = 0; i < repeats(stage); ++i) {
        x = block(x, name + std::to_string(i), stage, i == 0 ? stage.stride : 1);
      }
    }
    const int64_t head = form_.head > 0 ? form_.head : 4 * net_.shape(x)[1];
    x = conv_bn(x, "features." + std::to_string(number), {.channels = head, .kernel = 1});
    net_.tail_of_block(x);
    x = net_.dropout(net_.flatten(net_.global_pool(x)), settings_.number("dropout"));
    return net_.linear(
        "classifier.1", x,
        {.features = settings_.integer("num_classes"), .init = WeightInit::kUniformFanOut});
  }

 private:
  int64_t wide(int64_t channels) const {
    return round_channels(static_cast<double>(channels) * form_.width);
  }
  int repeats(const EfficientnetStage& stage) const {
    return static_cast<int>(std::ceil(stage.repeats * form_.depth));
  }

  // torchvision's Conv2dNormActivation: NAME.0, NAME.1, and silu if `active`.
  VarId conv_bn(VarId x, const std::string& name, Conv2d layer, bool active = true) {
    layer.padding = layer.kernel / 2;
    layer.same_padding = same_padding_;
    x = net_.batch_norm(name + ".1", net_.conv2d(name + ".0", x, layer), form_.norm);
    return active ? net_.activation("silu", x) : x;
  }

  VarId block(VarId x, const std::string& name, const EfficientnetStage& stage, int64_t stride) {
    const int64_t inputs = net_.shape(x)[1], channels = wide(stage.channels);
    // Later blocks are skipped more often.
    const double drop = settings_.number("stochastic_depth") * made_++ / blocks_;
    const VarId y = stage.fused ? fused(x, name + ".block.", stage, channels, stride)
                                : inverted(x, name + ".block.", stage, channels, stride);
    const bool residual = stride == 1 && inputs == channels;
    return net_.block(name, residual ? net_.add(net_.drop_path(y, drop), x) : y);
  }

  VarId inverted(VarId x, const std::string& name, const EfficientnetStage& stage, int64_t channels,
                 int64_t stride) {
    const int64_t inputs = net_.shape(x)[1];
    const int64_t expanded = round_channels(static_cast<double>(inputs * stage.expand));
    int number = 0;
    const auto next = [&] { return name + std::to_string(number++); };
    if (expanded != inputs) x = conv_bn(x, next(), {.channels = expanded, .kernel = 1});
    x = conv_bn(
        x, next(),
        {.channels = expanded, .kernel = stage.kernel, .stride = stride, .groups = expanded});
    const int64_t squeezed = std::max<int64_t>(1, inputs / 4);
    x = net_.squeeze_excitation(next(), x, squeezed, "silu", "sigmoid");
    return conv_bn(x, next(), {.channels = channels, .kernel = 1}, /*active=*/false);
  }

  VarId fused(VarId x, const std::string& name, const EfficientnetStage& stage, int64_t channels,
              int64_t stride) {
    const int64_t inputs = net_.shape(x)[1];
    const int64_t expanded = round_channels(static_cast<double>(inputs * stage.expand));
    const bool expands = expanded != inputs;
    x = conv_bn(
        x, name + "0",
        {.channels = expands ? expanded : channels, .kernel = stage.kernel, .stride = stride});
    if (!expands) return x;
    return conv_bn(x, name + "1", {.channels = channels, .kernel = 1}, /*active=*/false);
  }

  Network& net_;
  const EfficientnetForm& form_;
  const Settings& settings_;
  const bool same_padding_;
  int blocks_ = 0, made_ = 0;
};

// A network relative to b0. torchvision's b5 to b7 have another batch norm.
void define_scaled(ModelDef& def, double width, double depth, double dropout, int64_t image,
                   BatchNorm norm = {}) {
  define_efficientnet(def, {.stages = {{1, 3, 1, 16, 1},
                                       {6, 3, 2, 24, 2},
                                       {6, 5, 2, 40, 2},
                                       {6, 3, 2, 80, 3},
                                       {6, 5, 1, 112, 3},
                                       {6, 5, 2, 192, 4},
                                       {6, 3, 1, 320, 1}},
                            .width = width,
                            .depth = depth,
                            .dropout = dropout,
                            .norm = norm,
                            .image = image});
}

constexpr BatchNorm kNormOfLarge{.epsilon = 1e-3, .momentum = 0.01};

}  // namespace

void define_efficientnet(ModelDef& def, const EfficientnetForm& form) {
  def.help = "EfficientNet, torchvision's names";
  def.image = {3, form.image, form.image};
  def.schema =
      same_padding_key(batch_norm_model_schema(), false)
          .number("dropout", form.dropout, 0, 0.99, "dropout rate of the last layer's inputs")
          .number("stochastic_depth", 0.2, 0, 0.99,
                  "probability that a sample skips the last block; lower for earlier blocks");
  def.build = image_classifier([form](Network& network, VarId image, const Settings& settings) {
    return EfficientnetBuilder(network, form, settings).build(image);
  });
}

FLEET_MODEL(efficientnet_b0) { define_scaled(def, 1.0, 1.0, 0.2, 224); }
FLEET_MODEL(efficientnet_b1) { define_scaled(def, 1.0, 1.1, 0.2, 240); }
FLEET_MODEL(efficientnet_b2) { define_scaled(def, 1.1, 1.2, 0.3, 288); }
FLEET_MODEL(efficientnet_b3) { define_scaled(def, 1.2, 1.4, 0.3, 300); }
FLEET_MODEL(efficientnet_b4) { define_scaled(def, 1.4, 1.8, 0.4, 380); }
FLEET_MODEL(efficientnet_b5) { define_scaled(def, 1.6, 2.2, 0.4, 456, kNormOfLarge); }
FLEET_MODEL(efficientnet_b6) { define_scaled(def, 1.8, 2.6, 0.5, 528, kNormOfLarge); }
FLEET_MODEL(efficientnet_b7) { define_scaled(def, 2.0, 3.1, 0.5, 600, kNormOfLarge); }

}  // namespace fleet
