// vit_b_16, b_32, l_16 and l_32: the vision transformer (Dosovitskiy et al. 2021): patches of an
// image as tokens, encoder layers with attention, and a class token that is classified;
// torchvision's names and initialisation. As there, the number of positions depends on the image's
// size. attention reads q, k and v where the product of them lies.
#include <cmath>

#include "base/error.h"
#include "models/model.h"

namespace fleet {
namespace {

struct Size {
  int64_t patch, layers, heads, width, mlp;
};

// Xavier uniform (Glorot and Bengio 2010).
Init xavier(const Shape& weight) {
  return init::uniform(std::sqrt(6.0 / static_cast<double>(weight[0] + weight[1])));
}

class VitBuilder {
 public:
  VitBuilder(Network& network, const Size& size, double dropout)
      : net_(network), size_(size), dropout_(dropout) {}

  // N, 1 + patches, width: the class token, then the patches row by row, each with its position.
  VarId tokens(VarId image) {
    const int64_t patch = size_.patch, width = size_.width;
    const Shape in = net_.shape(image), weight = {width, in[1], patch, patch};
    if (in[2] % patch != 0 || in[3] % patch != 0) {
      throw Error(ErrorCode::kUsage,
                  "the image, " + std::to_string(in[2]) + " x " + std::to_string(in[3]) +
                      ", cannot be cut into patches of " + std::to_string(patch) + " x " +
                      std::to_string(patch),
                  "vit", "use a height and a width that are multiples of that");
    }
    const int64_t fan_in = weight.elements() / width;
    const VarId kernel = net_.parameter("conv_proj.weight", weight,
                                        init::normal(std::sqrt(1.0 / static_cast<double>(fan_in))));
    const VarId bias = net_.parameter("conv_proj.bias", {width}, init::constant(0));
    VarId x = net_.apply("conv2d", {image, kernel, bias}, {{"strides", Integers{patch, patch}}});
    // This moves nothing if the channels of images are innermost.
    x = net_.reshape(net_.transpose(x, {0, 2, 3, 1}), {0, -1, width});
    const VarId token = net_.parameter("class_token", {1, 1, width}, init::constant(0));
    const VarId zeros = net_.apply("fill", {}, {{"shape", Integers{in[0], 1, width}}});
    x = net_.apply("concat", {net_.apply("elementwise_add", {zeros, token}), x},
                   {{"axis", int64_t{1}}});
    const VarId position =
        net_.parameter("encoder.pos_embedding", {1, net_.shape(x)[1], width}, init::normal(0.02));
    return net_.dropout(net_.apply("elementwise_add", {x, position}), dropout_);
  }

  VarId layer(VarId x, const std::string& name) {
    VarId y = attention(net_.layer_norm(name + ".ln_1", x, kNorm), name + ".self_attention");
    const auto [normed, sum] =
        net_.add_layer_norm(name + ".ln_2", net_.dropout(y, dropout_), x, kNorm);
    y = linear(normed, name + ".mlp.0", size_.mlp);
    y = net_.dropout(net_.activation("gelu", y), dropout_);
    y = net_.dropout(linear(y, name + ".mlp.3", size_.width), dropout_);
    return net_.block(name, net_.add(sum, y));
  }

  static constexpr LayerNorm kNorm{.epsilon = 1e-6};

 private:
  using Integers = std::vector<int64_t>;

  VarId linear(VarId x, const std::string& name, int64_t features) {
    const Shape weight = {features, net_.shape(x)[2]};
    return net_.apply("fc",
                      {x, net_.parameter(name + ".weight", weight, xavier(weight)),
                       net_.parameter(name + ".bias", {features}, init::normal(1e-6))},
                      {{"axis", int64_t{2}}});
  }

  // softmax(q kᵀ / sqrt(width / heads)) v of each head (Vaswani et al. 2017).
  VarId attention(VarId x, const std::string& name) {
    const int64_t width = size_.width;
    const Shape weight = {3 * width, width};
    x = net_.apply("fc",
                   {x, net_.parameter(name + ".in_proj_weight", weight, xavier(weight)),
                    net_.parameter(name + ".in_proj_bias", {3 * width}, init::constant(0))},
                   {{"axis", int64_t{2}}});
    x = net_.reshape(x, {0, 0, 3 * size_.heads, width / size_.heads});
    x = net_.reshape(net_.apply("attention", {x}), {0, 0, width});
    return net_.linear(name + ".out_proj", x,
                       {.features = width, .init = WeightInit::kTorchDefaultNoBias});
  }

  Network& net_;
  const Size size_;
  const double dropout_;
};

void define_vit(ModelDef& def, const Size& size) {
  def.help = "vision transformer, torchvision's names";
  def.schema = model_schema().number("dropout", 0, 0, 0.99,
                                     "dropout rate of embeddings and of each layer's outputs");
  def.build = image_classifier([size](Network& network, VarId image, const Settings& settings) {
    VitBuilder builder(network, size, settings.number("dropout"));
    VarId x = network.block("embedding", builder.tokens(image));
    for (int64_t i = 0; i < size.layers; ++i) {
      x = builder.layer(x, "encoder.layers.encoder_layer_" + std::to_string(i));
    }
    x = network.layer_norm("encoder.ln", x, VitBuilder::kNorm);
    x = network.apply("slice", {x},
                      {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"end", int64_t{1}}});
    return network.linear("heads.head", network.flatten(x),
                          {.features = settings.integer("num_classes"), .init = WeightInit::kZero});
  });
}

}  // namespace

FLEET_MODEL(vit_b_16) { define_vit(def, {16, 12, 12, 768, 3072}); }
FLEET_MODEL(vit_b_32) { define_vit(def, {32, 12, 12, 768, 3072}); }
FLEET_MODEL(vit_l_16) { define_vit(def, {16, 24, 16, 1024, 4096}); }
FLEET_MODEL(vit_l_32) { define_vit(def, {32, 24, 16, 1024, 4096}); }

}  // namespace fleet
