// convnext_tiny, small, base and large: Liu et al. 2022: depthwise convolutions of 7 x 7, layer
// norm over channels, and a scale for the channels of each block; torchvision's names and
// initialisation.
#include "models/convnext.h"

namespace fleet {
namespace {

// Names of layers. Stem: NAME.0, the convolution, and NAME.1, the norm. Steps between stages: the
// other way round.
struct ConvnextNames {
  std::string stem;
  std::function<std::string(int stage)> step;
  std::function<std::string(int stage, int64_t i)> block;
  std::string depthwise, norm, expand, project, scale;  // in a block
  std::string head_norm, head;
};

ConvnextNames names_of_torchvision() {
  const auto feature = [](int number) { return "features." + std::to_string(number); };
  return {.stem = "features.0",
          .step = [=](int stage) { return feature(2 * stage); },
          .block = [=](int stage,
                       int64_t i) { return feature(2 * stage + 1) + "." + std::to_string(i); },
          .depthwise = ".block.0",
          .norm = ".block.2",
          .expand = ".block.3",
          .project = ".block.5",
          .scale = ".layer_scale",
          .head_norm = "classifier.0",
          .head = "classifier.2"};
}

ConvnextNames names_of_timm() {
  const auto in_stage = [](int stage, const std::string& layer) {
    return "stages." + std::to_string(stage) + "." + layer;
  };
  return {
      .stem = "stem",
      .step = [=](int stage) { return in_stage(stage, "downsample"); },
      .block = [=](int stage, int64_t i) { return in_stage(stage, "blocks." + std::to_string(i)); },
      .depthwise = ".conv_dw",
      .norm = ".norm",
      .expand = ".mlp.fc1",
      .project = ".mlp.fc2",
      .scale = ".gamma",
      .head_norm = "head.norm",
      .head = "head.fc"};
}

class ConvnextBuilder {
 public:
  ConvnextBuilder(Network& network, const ConvnextForm& form, double stochastic_depth)
      : net_(network),
        form_(form),
        names_(form.timm ? names_of_timm() : names_of_torchvision()),
        stochastic_depth_(stochastic_depth) {
    for (const int64_t blocks : form.blocks) blocks_ += blocks;
  }

  VarId build(VarId image, int64_t classes) {
    VarId x = patches(image, names_.stem + ".0", form_.channels[0], 4);
    x = net_.block(names_.stem, norm(x, names_.stem + ".1"));
    for (int stage = 0; stage < 4; ++stage) {
      if (stage > 0) {
        const std::string name = names_.step(stage);
        x = patches(norm(x, name + ".0"), name + ".1", form_.channels[stage], 2);
        net_.block(name, x);
        net_.join_next_block();
      }
      for (int64_t i = 0; i < form_.blocks[stage]; ++i) x = block(x, names_.block(stage, i));
    }
    x = net_.layer_norm(names_.head_norm, net_.flatten(net_.global_pool(x)), kNorm);
    return net_.linear(names_.head, x, {.features = classes, .init = WeightInit::kNormal002});
  }

 private:
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
    VarId y = net_.conv2d(name + names_.depthwise, x,
                          {.channels = channels,
                           .kernel = 7,
                           .padding = 3,
                           .groups = channels,
                           .bias = true,
                           .init = WeightInit::kNormal002});
    y = net_.layer_norm(name + names_.norm, net_.transpose(y, {0, 2, 3, 1}), kNorm);
    y = net_.linear(name + names_.expand, y,
                    {.features = 4 * channels, .init = WeightInit::kNormal002});
    y = net_.activation("gelu", y);
    if (form_.response_norm) y = response_norm(y, name + ".mlp.grn");
    y = net_.linear(name + names_.project, y,
                    {.features = channels, .init = WeightInit::kNormal002});
    y = net_.transpose(y, {0, 3, 1, 2});
    if (!form_.response_norm) y = scaled(y, name + names_.scale);
    const double drop =
        stochastic_depth_ * static_cast<double>(made_++) / static_cast<double>(blocks_ - 1);
    return net_.block(name, net_.add(net_.drop_path(y, drop), x));
  }

  VarId scaled(VarId x, const std::string& name) {
    const int64_t channels = net_.shape(x)[1];
    const Shape shape = form_.timm ? Shape{channels} : Shape{channels, 1, 1};
    const VarId scale =
        net_.without_weight_decay(net_.parameter(name, shape, init::constant(1e-6)));
    return net_.apply("elementwise_mul", {x, scale}, {{"axis", int64_t{1}}});
  }

  VarId response_norm(VarId x, const std::string& name) {
    const Shape channels = {net_.shape(x)[3]};
    const VarId scale = net_.parameter(name + ".weight", channels, init::constant(0));
    const VarId bias = net_.parameter(name + ".bias", channels, init::constant(0));
    return net_.apply("global_response_norm", {x, scale, bias});
  }

  static constexpr LayerNorm kNorm{.epsilon = 1e-6};

  Network& net_;
  const ConvnextForm& form_;
  const ConvnextNames names_;
  const double stochastic_depth_;
  int64_t blocks_ = 0, made_ = 0;
};

}  // namespace

void define_convnext(ModelDef& def, const ConvnextForm& form) {
  def.help = form.response_norm ? "ConvNeXt version 2, timm's names"
             : form.timm        ? "ConvNeXt, timm's names"
                                : "ConvNeXt, torchvision's names";
  def.schema = model_schema().number(
      "stochastic_depth", form.stochastic_depth, 0, 0.99,
      "probability that a sample skips the last block; lower for earlier blocks");
  def.build = image_classifier([form](Network& network, VarId image, const Settings& settings) {
    ConvnextBuilder builder(network, form, settings.number("stochastic_depth"));
    return builder.build(image, settings.integer("num_classes"));
  });
}

FLEET_MODEL(convnext_tiny) { define_convnext(def, {{96, 192, 384, 768}, {3, 3, 9, 3}, 0.1}); }
FLEET_MODEL(convnext_small) { define_convnext(def, {{96, 192, 384, 768}, {3, 3, 27, 3}, 0.4}); }
FLEET_MODEL(convnext_base) { define_convnext(def, {{128, 256, 512, 1024}, {3, 3, 27, 3}, 0.5}); }
FLEET_MODEL(convnext_large) { define_convnext(def, {{192, 384, 768, 1536}, {3, 3, 27, 3}, 0.5}); }

}  // namespace fleet
