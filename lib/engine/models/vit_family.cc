// Patches of an image as tokens, encoder layers with attention, and a class token that is
// classified. The number of positions depends on the image's size. attention reads q, k and v where
// the product of them lies.
#include "models/vit_family.h"

#include <cmath>

#include "base/error.h"
#include "models/distillation.h"

namespace fleet {
namespace {

struct VitNames {
  std::string patches, class_token, positions, layer, norm1, qkv_weight, qkv_bias, projection,
      norm2, up, down, norm, head;
};

const VitNames& vit_names(VitOrigin origin) {
  static const VitNames torchvision = {.patches = "conv_proj",
                                       .class_token = "class_token",
                                       .positions = "encoder.pos_embedding",
                                       .layer = "encoder.layers.encoder_layer_",
                                       .norm1 = ".ln_1",
                                       .qkv_weight = ".self_attention.in_proj_weight",
                                       .qkv_bias = ".self_attention.in_proj_bias",
                                       .projection = ".self_attention.out_proj",
                                       .norm2 = ".ln_2",
                                       .up = ".mlp.0",
                                       .down = ".mlp.3",
                                       .norm = "encoder.ln",
                                       .head = "heads.head"};
  static const VitNames timm = {.patches = "patch_embed.proj",
                                .class_token = "cls_token",
                                .positions = "pos_embed",
                                .layer = "blocks.",
                                .norm1 = ".norm1",
                                .qkv_weight = ".attn.qkv.weight",
                                .qkv_bias = ".attn.qkv.bias",
                                .projection = ".attn.proj",
                                .norm2 = ".norm2",
                                .up = ".mlp.fc1",
                                .down = ".mlp.fc2",
                                .norm = "norm",
                                .head = "head"};
  return origin == VitOrigin::kTorchvision ? torchvision : timm;
}

// Xavier uniform (Glorot and Bengio 2010).
Init xavier(const Shape& weight) {
  return init::uniform(std::sqrt(6.0 / static_cast<double>(weight[0] + weight[1])));
}

class VitBuilder {
 public:
  VitBuilder(Network& network, const VitConfig& config, const Settings& settings)
      : net_(network),
        config_(config),
        names_(vit_names(config.origin)),
        timm_(config.origin == VitOrigin::kTimm),
        patch_(settings.integer("patch")),
        dropout_(settings.number("dropout")),
        stochastic_depth_(settings.number("stochastic_depth")),
        classes_(settings.integer("num_classes")),
        norm_{.epsilon = settings.number("norm_epsilon")} {}

  NamedVars build(VarId image) {
    VarId x = net_.block("embedding", tokens(image));
    for (int64_t i = 0; i < config_.layers; ++i) {
      x = layer(x, names_.layer + std::to_string(i), depth_rate(i));
    }
    x = net_.tail_of_block(net_.layer_norm(names_.norm, x, norm_));
    const VarId own = head(x, names_.head, 0);
    if (!config_.distilled) return {{"logits", own}};
    const VarId teachers = head(x, names_.head + "_dist", 1);
    NamedVars outputs = {{kDistillationLogits, teachers}, {"logits", own}};
    if (net_.training() && net_.wants(kDistillationLogits)) return outputs;
    outputs["logits"] = net_.apply("scale", {net_.add(own, teachers)}, {{"scale", 0.5}});
    return outputs;
  }

 private:
  using Integers = std::vector<int64_t>;

  // N, patches, width: row by row.
  VarId patches(VarId image) {
    const int64_t patch = patch_, width = config_.width;
    const Shape in = net_.shape(image), weight = {width, in[1], patch, patch};
    if (in[2] % patch != 0 || in[3] % patch != 0) {
      throw Error(ErrorCode::kUsage,
                  "the image, " + std::to_string(in[2]) + " x " + std::to_string(in[3]) +
                      ", cannot be cut into patches of " + std::to_string(patch) + " x " +
                      std::to_string(patch),
                  "vit", "use a height and a width that are multiples of that, or set model.patch");
    }
    const double fan_in = static_cast<double>(weight.elements() / width);
    const VarId kernel =
        net_.parameter(names_.patches + ".weight", weight,
                       timm_ ? init::torch_default(weight) : init::normal(std::sqrt(1.0 / fan_in)));
    const VarId bias = net_.parameter(names_.patches + ".bias", {width},
                                      timm_ ? init::torch_default(weight) : init::constant(0));
    const VarId x =
        net_.apply("conv2d", {image, kernel, bias}, {{"strides", Integers{patch, patch}}});
    // This moves nothing if the channels of images are innermost.
    return net_.reshape(net_.transpose(x, {0, 2, 3, 1}), {0, -1, width});
  }

  // `count` learned tokens, the same for each sample: N, count, width.
  VarId learned(const std::string& name, int64_t count, const Init& start, int64_t samples) {
    const VarId token =
        net_.without_weight_decay(net_.parameter(name, {1, count, config_.width}, start));
    const VarId zeros =
        net_.apply("fill", {}, {{"shape", Integers{samples, count, config_.width}}});
    return net_.apply("elementwise_add", {zeros, token});
  }

  VarId with_positions(VarId x) {
    const VarId position = net_.without_weight_decay(
        net_.parameter(names_.positions, {1, net_.shape(x)[1], config_.width}, init::normal(0.02)));
    return net_.apply("elementwise_add", {x, position});
  }

  // N, tokens, width: the class token and its like, then the patches, with positions.
  VarId tokens(VarId image) {
    VarId x = patches(image);
    if (!config_.token_positions) x = with_positions(x);
    const int64_t samples = net_.shape(image)[0];
    const Init start = timm_ ? init::normal(1e-6) : init::constant(0);
    std::vector<VarId> parts = {learned(names_.class_token, 1, start, samples)};
    if (config_.distilled) parts.push_back(learned("dist_token", 1, init::normal(0.02), samples));
    if (config_.registers > 0) {
      parts.push_back(learned("reg_token", config_.registers, start, samples));
    }
    parts.push_back(x);
    x = net_.apply("concat", parts, {{"axis", int64_t{1}}});
    if (config_.token_positions) x = with_positions(x);
    return net_.dropout(x, inner_dropout());
  }

  VarId layer(VarId x, const std::string& name, double depth_rate) {
    const double dropout = inner_dropout();
    VarId y = attention(net_.layer_norm(name + names_.norm1, x, norm_), name);
    y = net_.drop_path(scaled(net_.dropout(y, dropout), name + ".ls1.gamma"), depth_rate);
    const auto [normed, sum] = net_.add_layer_norm(name + names_.norm2, y, x, norm_);
    y = linear(normed, name + names_.up, 4 * config_.width);
    y = net_.dropout(net_.activation("gelu", y), dropout);
    y = net_.dropout(linear(y, name + names_.down, config_.width), dropout);
    y = net_.drop_path(scaled(y, name + ".ls2.gamma"), depth_rate);
    return net_.block(name, net_.add(sum, y));
  }

  VarId scaled(VarId x, const std::string& name) {
    if (config_.layer_scale == 0) return x;
    const VarId factors =
        net_.parameter(name, {config_.width}, init::constant(config_.layer_scale));
    return net_.apply("elementwise_mul", {x, factors});
  }

  VarId linear(VarId x, const std::string& name, int64_t features) {
    if (timm_) {
      return net_.linear(name, x, {.features = features, .init = WeightInit::kNormal002});
    }
    const Shape weight = {features, net_.shape(x)[2]};
    return net_.apply("fc",
                      {x, net_.parameter(name + ".weight", weight, xavier(weight)),
                       net_.parameter(name + ".bias", {features}, init::normal(1e-6))},
                      {{"axis", int64_t{2}}});
  }

  // softmax(q kᵀ / sqrt(width / heads)) v of each head (Vaswani et al. 2017).
  VarId attention(VarId x, const std::string& name) {
    const int64_t width = config_.width;
    const Shape weight = {3 * width, width};
    const Init start = timm_ ? init::normal(0.02) : xavier(weight);
    x = net_.apply("fc",
                   {x, net_.parameter(name + names_.qkv_weight, weight, start),
                    net_.parameter(name + names_.qkv_bias, {3 * width}, init::constant(0))},
                   {{"axis", int64_t{2}}});
    x = net_.reshape(x, {0, 0, 3 * config_.heads, width / config_.heads});
    x = net_.reshape(net_.apply("attention", {x}), {0, 0, width});
    return net_.linear(name + names_.projection, x,
                       {.features = width,
                        .init = timm_ ? WeightInit::kNormal002 : WeightInit::kTorchDefaultNoBias});
  }

  // The logits that token `index` gives.
  VarId head(VarId x, const std::string& name, int64_t index) {
    x = net_.apply("slice", {x}, {{"axis", int64_t{1}}, {"start", index}, {"end", index + 1}});
    x = net_.dropout(net_.flatten(x), timm_ ? dropout_ : 0);
    return net_.linear(
        name, x,
        {.features = classes_, .init = timm_ ? WeightInit::kNormal002 : WeightInit::kZero});
  }

  double depth_rate(int64_t layer) const {
    return stochastic_depth_ * static_cast<double>(layer) / static_cast<double>(config_.layers - 1);
  }
  // timm's drop_rate is that of the head alone.
  double inner_dropout() const { return timm_ ? 0 : dropout_; }

  Network& net_;
  const VitConfig& config_;
  const VitNames& names_;
  const bool timm_;
  const int64_t patch_;
  const double dropout_, stochastic_depth_;
  const int64_t classes_;
  const LayerNorm norm_;
};

}  // namespace

void define_vit(ModelDef& def, const VitConfig& config) {
  const bool timm = config.origin == VitOrigin::kTimm;
  def.help = std::string("vision transformer, ") + (timm ? "timm's" : "torchvision's") + " names";
  if (config.distilled)
    def.help +=
        "; the logits are the mean of two heads', in training too unless it "
        "has a teacher";
  def.image = {3, config.image, config.image};
  def.schema =
      model_schema()
          .number("dropout", 0, 0, 0.99,
                  timm ? "dropout rate of the head's inputs"
                       : "dropout rate of embeddings and of each layer's outputs")
          .number("stochastic_depth", 0, 0, 0.99,
                  "probability that a sample skips the last block; lower for earlier blocks")
          .number("norm_epsilon", 1e-6, 1e-12, 1e-2,
                  "epsilon of the layer norms, with which the weights were trained")
          .integer("patch", config.patch, 1, 256,
                   "rows and columns of a patch; weights of another one are resampled");
  if (config.distilled) def.outputs.emplace_back(kDistillationLogits);
  def.build = [config](Network& network, const NamedVars& inputs, const Settings& settings) {
    return VitBuilder(network, config, settings).build(inputs.at("image"));
  };
}

}  // namespace fleet
