// efficientnet_b0 to b4: Tan and Le 2019; torchvision's names and initialisation.
#include <cmath>

#include "models/model.h"
#include "models/network.h"

namespace fleet {
namespace {

struct Stage {
  int64_t expand, kernel, stride, channels;
  int repeats;
};
constexpr Stage kStages[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},
                             {6, 3, 2, 80, 3}, {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4},
                             {6, 3, 1, 320, 1}};

// The scale factors of a network relative to b0.
struct Scale {
  double width, depth, dropout;
  int64_t image;
};

class EfficientnetBuilder {
 public:
  EfficientnetBuilder(Network& network, const Scale& scale, double stochastic_depth)
      : net_(network), scale_(scale), stochastic_depth_(stochastic_depth) {
    for (const Stage& stage : kStages) blocks_ += repeats(stage);
  }

  int64_t wide(int64_t channels) const {
    return round_channels(static_cast<double>(channels) * scale_.width);
  }
  int repeats(const Stage& stage) const {
    return static_cast<int>(std::ceil(stage.repeats * scale_.depth));
  }

  // torchvision's Conv2dNormActivation: NAME.0, NAME.1, and silu if `active`.
  VarId conv_bn(VarId x, const std::string& name, const Conv2d& layer, bool active = true) {
    x = net_.batch_norm(name + ".1", net_.conv2d(name + ".0", x, layer));
    return active ? net_.activation("silu", x) : x;
  }

  VarId stage(VarId x, const std::string& name, const Stage& stage) {
    for (int i = 0; i < repeats(stage); ++i) {
      x = block(x, name + "." + std::to_string(i), stage, i == 0 ? stage.stride : 1);
    }
    return x;
  }

 private:
  VarId block(VarId x, const std::string& name, const Stage& stage, int64_t stride) {
    const int64_t inputs = net_.shape(x)[1], channels = wide(stage.channels);
    const int64_t expanded = round_channels(static_cast<double>(inputs * stage.expand));
    // Later blocks are skipped more often.
    const double drop = stochastic_depth_ * made_++ / blocks_;
    int number = 0;
    const auto next = [&] { return name + ".block." + std::to_string(number++); };
    VarId y = x;
    if (expanded != inputs) y = conv_bn(y, next(), {.channels = expanded, .kernel = 1});
    y = conv_bn(y, next(),
                {.channels = expanded,
                 .kernel = stage.kernel,
                 .stride = stride,
                 .padding = stage.kernel / 2,
                 .groups = expanded});
    const int64_t squeezed = std::max<int64_t>(1, inputs / 4);
    y = net_.squeeze_excitation(next(), y, squeezed, "silu", "sigmoid");
    y = conv_bn(y, next(), {.channels = channels, .kernel = 1}, /*active=*/false);
    const bool residual = stride == 1 && inputs == channels;
    return net_.block(name, residual ? net_.add(net_.drop_path(y, drop), x) : y);
  }

  Network& net_;
  const Scale scale_;
  const double stochastic_depth_;
  int blocks_ = 0, made_ = 0;
};

void define_efficientnet(ModelDef& def, const Scale& scale) {
  def.help = "EfficientNet, torchvision's names";
  def.image = {3, scale.image, scale.image};
  def.schema =
      model_schema()
          .number("dropout", scale.dropout, 0, 0.99, "dropout rate of the last layer's inputs")
          .number("stochastic_depth", 0.2, 0, 0.99,
                  "probability that a sample skips the last block; lower for earlier blocks");
  def.build = image_classifier([scale](Network& network, VarId image, const Settings& settings) {
    EfficientnetBuilder builder(network, scale, settings.number("stochastic_depth"));
    VarId x =
        builder.conv_bn(image, "features.0",
                        {.channels = builder.wide(32), .kernel = 3, .stride = 2, .padding = 1});
    network.block("features.0", x);
    int number = 1;
    for (const Stage& stage : kStages) {
      x = builder.stage(x, "features." + std::to_string(number++), stage);
    }
    x = builder.conv_bn(x, "features." + std::to_string(number),
                        {.channels = 4 * network.shape(x)[1], .kernel = 1});
    x = network.dropout(network.flatten(network.global_pool(x)), settings.number("dropout"));
    return network.linear(
        "classifier.1", x,
        {.features = settings.integer("num_classes"), .init = WeightInit::kUniformFanOut});
  });
}

}  // namespace

FLEET_MODEL(efficientnet_b0) { define_efficientnet(def, {1.0, 1.0, 0.2, 224}); }
FLEET_MODEL(efficientnet_b1) { define_efficientnet(def, {1.0, 1.1, 0.2, 240}); }
FLEET_MODEL(efficientnet_b2) { define_efficientnet(def, {1.1, 1.2, 0.3, 288}); }
FLEET_MODEL(efficientnet_b3) { define_efficientnet(def, {1.2, 1.4, 0.3, 300}); }
FLEET_MODEL(efficientnet_b4) { define_efficientnet(def, {1.4, 1.8, 0.4, 380}); }

}  // namespace fleet
