// efficientnet_lite0 to lite4: EfficientNet for mobile devices (TensorFlow's tpu repository, 2020):
// relu6, nothing squeezed, and neither the first nor the last stage grows. timm's names, and the
// padding and batch norm of its tf_efficientnet_lite*, whose weights come from TensorFlow.
#include <cmath>

#include "models/model.h"

namespace fleet {
namespace {

struct LiteStage {
  int64_t expand, kernel, stride, channels;
  int repeats;
};
constexpr LiteStage kLiteStages[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},
                                     {6, 3, 2, 80, 3}, {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4},
                                     {6, 3, 1, 320, 1}};

// Relative to lite0.
struct LiteScale {
  double width, depth, dropout;
  int64_t image;
};

class LiteBuilder {
 public:
  LiteBuilder(Network& network, const LiteScale& scale, const Settings& settings)
      : net_(network),
        scale_(scale),
        same_padding_(settings.boolean("same_padding")),
        drop_(settings.number("stochastic_depth")) {
    for (size_t stage = 0; stage < std::size(kLiteStages); ++stage) blocks_ += repeats(stage);
  }

  VarId stem(VarId image) {
    const VarId x = conv_bn(image, "conv_stem", "bn1", {.channels = 32, .kernel = 3, .stride = 2});
    return net_.block("stem", net_.activation("relu6", x));
  }

  VarId stage(VarId x, size_t stage) {
    const LiteStage& form = kLiteStages[stage];
    for (int i = 0; i < repeats(stage); ++i) {
      const std::string name = "blocks." + std::to_string(stage) + "." + std::to_string(i);
      x = block(x, name, form, i == 0 ? form.stride : 1);
    }
    return x;
  }

  VarId head(VarId x) {
    x = conv_bn(x, "conv_head", "bn2", {.channels = 1280, .kernel = 1});
    return net_.tail_of_block(net_.activation("relu6", x));
  }

 private:
  int repeats(size_t stage) const {
    const int base = kLiteStages[stage].repeats;
    const bool grows = stage > 0 && stage + 1 < std::size(kLiteStages);
    return grows ? static_cast<int>(std::ceil(base * scale_.depth)) : base;
  }

  VarId conv_bn(VarId x, const std::string& conv, const std::string& bn, Conv2d layer) {
    layer.padding = layer.kernel / 2;
    layer.same_padding = same_padding_;
    return net_.batch_norm(bn, net_.conv2d(conv, x, layer), {.epsilon = 1e-3});
  }

  VarId block(VarId x, const std::string& name, const LiteStage& stage, int64_t stride) {
    const int64_t inputs = net_.shape(x)[1], hidden = inputs * stage.expand;
    const int64_t channels = round_channels(static_cast<double>(stage.channels) * scale_.width);
    const double drop = drop_ * made_++ / blocks_;
    int norms = 1;
    const auto next_norm = [&] { return name + ".bn" + std::to_string(norms++); };
    VarId y = x;
    if (stage.expand > 1) {
      y = conv_bn(y, name + ".conv_pw", next_norm(), {.channels = hidden, .kernel = 1});
      y = net_.activation("relu6", y);
    }
    y = conv_bn(y, name + ".conv_dw", next_norm(),
                {.channels = hidden, .kernel = stage.kernel, .stride = stride, .groups = hidden});
    y = net_.activation("relu6", y);
    const char* project = stage.expand > 1 ? ".conv_pwl" : ".conv_pw";
    y = conv_bn(y, name + project, next_norm(), {.channels = channels, .kernel = 1});
    const bool residual = stride == 1 && inputs == channels;
    return net_.block(name, residual ? net_.add(net_.drop_path(y, drop), x) : y);
  }

  Network& net_;
  const LiteScale scale_;
  const bool same_padding_;
  const double drop_;
  int blocks_ = 0, made_ = 0;
};

void define_lite(ModelDef& def, const LiteScale& scale) {
  def.help = "EfficientNet Lite, timm's names";
  def.image = {3, scale.image, scale.image};
  def.schema =
      same_padding_key(batch_norm_model_schema(), true)
          .number("dropout", scale.dropout, 0, 0.99, "dropout rate of the last layer's inputs")
          .number("stochastic_depth", 0.2, 0, 0.99,
                  "probability that a sample skips the last block; lower for earlier blocks");
  def.build = image_classifier([scale](Network& network, VarId image, const Settings& settings) {
    LiteBuilder builder(network, scale, settings);
    VarId x = builder.stem(image);
    for (size_t stage = 0; stage < std::size(kLiteStages); ++stage) x = builder.stage(x, stage);
    x = network.flatten(network.global_pool(builder.head(x)));
    return network.linear(
        "classifier", network.dropout(x, settings.number("dropout")),
        {.features = settings.integer("num_classes"), .init = WeightInit::kUniformFanOut});
  });
}

}  // namespace

FLEET_MODEL(efficientnet_lite0) { define_lite(def, {1.0, 1.0, 0.2, 224}); }
FLEET_MODEL(efficientnet_lite1) { define_lite(def, {1.0, 1.1, 0.2, 240}); }
FLEET_MODEL(efficientnet_lite2) { define_lite(def, {1.1, 1.2, 0.3, 260}); }
FLEET_MODEL(efficientnet_lite3) { define_lite(def, {1.2, 1.4, 0.3, 300}); }
FLEET_MODEL(efficientnet_lite4) { define_lite(def, {1.4, 1.8, 0.3, 380}); }

}  // namespace fleet
