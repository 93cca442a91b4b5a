// Tokens are [N, rows, columns, width]. As in torchvision, an image whose rows or columns are not a
// multiple of the window is padded with zeros, and a window as large as the image is not shifted.
// With timm's rule, a window is also no larger than its map, and a map is shifted before it is
// padded.
//
// Version 2 normalises behind attention and MLP, compares q and k by their cosine times a learned
// factor, and computes the bias of an offset by a small network of its logarithm.
#include "models/swin_family.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

class SwinBuilder {
 public:
  SwinBuilder(Network& network, const SwinConfig& config, const Settings& settings)
      : net_(network),
        config_(config),
        dropout_(settings.number("dropout")),
        stochastic_depth_(settings.number("stochastic_depth")),
        window_(settings.integer("window")),
        timm_(settings.text("window_rule") == "timm"),
        trained_(config.v2 ? settings.integers("trained_windows") : Integers()),
        norm_{.epsilon = settings.number("norm_epsilon")} {
    for (const int64_t layers : config.depths) layers_ += layers;
    const bool positive =
        std::all_of(trained_.begin(), trained_.end(), [](int64_t w) { return w > 0; });
    if (trained_.empty() || (positive && trained_.size() == config.depths.size())) return;
    throw Error(ErrorCode::kUsage, "is not a list of four windows, one of each stage",
                "model.trained_windows", "give four numbers above 0, or none");
  }

  VarId build(VarId image, int64_t classes) {
    VarId x = net_.conv2d("features.0.0", image,
                          {.channels = config_.width,
                           .kernel = 4,
                           .stride = 4,
                           .bias = true,
                           .init = WeightInit::kTorchDefault});
    x = net_.layer_norm("features.0.2", net_.transpose(x, {0, 2, 3, 1}), norm_);
    net_.block("features.0", x);
    for (size_t stage = 0; stage < 4; ++stage) {
      if (stage > 0) {
        const std::string name = "features." + std::to_string(2 * stage);
        x = merge(x, name);  // a part of the next block, as timm groups layers
      }
      const std::string name = "features." + std::to_string(2 * stage + 1) + ".";
      for (int64_t i = 0; i < config_.depths[stage]; ++i) {
        x = layer(x, name + std::to_string(i), stage, i % 2 == 1);
      }
    }
    x = net_.tail_of_block(net_.layer_norm("norm", x, norm_));
    x = net_.transpose(x, {0, 3, 1, 2});
    x = net_.flatten(net_.global_pool(x));
    return linear(x, "head", classes);
  }

 private:
  VarId linear(VarId x, const std::string& name, int64_t features, bool bias = true) {
    return net_.linear(name, x,
                       {.features = features, .bias = bias, .init = WeightInit::kNormal002});
  }

  // Zeros behind the last row (axis 1) or column (axis 2).
  VarId padded(VarId x, int axis, int64_t count) {
    if (count == 0) return x;
    const Shape& shape = net_.shape(x);
    Integers zeros = {shape[0], shape[1], shape[2], shape[3]};
    zeros[static_cast<size_t>(axis)] = count;
    return net_.apply("concat", {x, net_.apply("fill", {}, {{"shape", zeros}})},
                      {{"axis", int64_t{axis}}});
  }
  VarId cut(VarId x, int axis, int64_t count) {
    if (net_.shape(x)[axis] == count) return x;
    return net_.apply("slice", {x},
                      {{"axis", int64_t{axis}}, {"start", int64_t{0}}, {"end", count}});
  }

  // The first `count` rows (axis 1) or columns (axis 2) behind the last.
  VarId rolled(VarId x, int axis, int64_t count) {
    const int64_t size = net_.shape(x)[axis];
    if (count % size == 0) return x;
    const auto part = [&](int64_t start, int64_t end) {
      return net_.apply("slice", {x}, {{"axis", int64_t{axis}}, {"start", start}, {"end", end}});
    };
    return net_.apply("concat", {part(count, size), part(0, count)}, {{"axis", int64_t{axis}}});
  }

  // Four neighbours as one token, first those of a column, with twice the width.
  VarId merge(VarId x, const std::string& name) {
    for (int axis = 1; axis < 3; ++axis) x = padded(x, axis, net_.shape(x)[axis] % 2);
    const Shape in = net_.shape(x);
    x = net_.reshape(x, {0, in[1] / 2, 2, in[2] / 2, 2, in[3]});
    x = net_.reshape(net_.transpose(x, {0, 1, 3, 4, 2, 5}), {0, in[1] / 2, in[2] / 2, 4 * in[3]});
    if (!config_.v2) x = net_.layer_norm(name + ".norm", x, norm_);
    x = linear(x, name + ".reduction", 2 * in[3], /*bias=*/false);
    return config_.v2 ? net_.layer_norm(name + ".norm", x, norm_) : x;
  }

  VarId layer(VarId x, const std::string& name, size_t stage, bool shifts) {
    const double rate =
        stochastic_depth_ * static_cast<double>(made_++) / static_cast<double>(layers_ - 1);
    if (config_.v2) {
      VarId y = attention(x, name + ".attn", stage, shifts);
      x = net_.add(x, net_.drop_path(net_.layer_norm(name + ".norm1", y, norm_), rate));
      y = net_.layer_norm(name + ".norm2", mlp(x, name + ".mlp"), norm_);
      return net_.block(name, net_.add(x, net_.drop_path(y, rate)));
    }
    VarId y = attention(net_.layer_norm(name + ".norm1", x, norm_), name + ".attn", stage, shifts);
    const auto [normed, sum] =
        net_.add_layer_norm(name + ".norm2", net_.drop_path(y, rate), x, norm_);
    y = net_.drop_path(mlp(normed, name + ".mlp"), rate);
    return net_.block(name, net_.add(sum, y));
  }

  VarId mlp(VarId x, const std::string& name) {
    const int64_t width = net_.shape(x)[3];
    x = net_.activation("gelu", linear(x, name + ".0", 4 * width));
    return net_.dropout(linear(net_.dropout(x, dropout_), name + ".3", width), dropout_);
  }

  // Height and width of the windows of a map: as asked or, with timm's rule, no larger than the
  // map.
  Integers window_of(const Shape& map) const {
    if (!timm_) return {window_, window_};
    return {std::min(window_, map[1]), std::min(window_, map[2])};
  }

  VarId attention(VarId x, const std::string& name, size_t stage, bool shifts) {
    const Shape in = net_.shape(x);
    const int64_t width = in[3], heads = config_.heads[stage];
    const Integers window = window_of(in);
    Integers grid, shift;
    bool pads = false;
    for (int axis = 1; axis < 3; ++axis) {
      const auto index = static_cast<size_t>(axis - 1);
      const int64_t size = window[index], count = (in[axis] + size - 1) / size;
      grid.push_back(count);
      shift.push_back(shifts && count > 1 ? size / 2 : 0);
      pads = pads || in[axis] % size != 0;
    }
    Attributes windows = {{"grid", grid}, {"window", window}, {"shift", shift}};
    Attributes split = windows;
    split.set("heads", heads);
    // window_split shifts what it is given, which is the padded map.
    const bool shifts_first = timm_ && pads && shift[0] + shift[1] > 0;
    if (shifts_first) split.set("shift", Integers{0, 0});
    for (int axis = 1; axis < 3; ++axis) {
      const auto index = static_cast<size_t>(axis - 1);
      if (shifts_first) x = rolled(x, axis, shift[index]);
      x = padded(x, axis, grid[index] * window[index] - in[axis]);
    }
    const std::vector<VarId> parts = net_.apply_all("window_split", {qkv(x, name)}, split);
    VarId q = parts[0], k = parts[1], table;
    if (config_.v2) {
      q = times_factor(normalised(q), name + ".logit_scale", heads);
      k = normalised(k);
      table = computed_biases(name + ".cpb_mlp", stage, window);
    } else {
      windows.set("scale", 1 / std::sqrt(static_cast<double>(width / heads)));
      table = net_.without_weight_decay(
          net_.parameter(name + ".relative_position_bias_table",
                         {(2 * window[0] - 1) * (2 * window[1] - 1), heads}, init::normal(0.02)));
    }
    const VarId scores = net_.apply("matmul", {q, k}, {{"transpose_y", true}});
    const VarId weights = net_.apply("window_softmax", {scores, table}, windows);
    x = net_.apply("window_join", {net_.apply("matmul", {weights, parts[2]})}, split);
    // Each token for itself: those of the padding need not be projected.
    for (int axis = 1; axis < 3; ++axis) {
      x = cut(x, axis, in[axis]);
      if (shifts_first) x = rolled(x, axis, in[axis] - shift[static_cast<size_t>(axis - 1)]);
    }
    return net_.dropout(linear(x, name + ".proj", width), dropout_);
  }

  // In version 2, k has no bias: its part of the parameter is not used.
  VarId qkv(VarId x, const std::string& name) {
    const int64_t width = net_.shape(x)[3];
    if (!config_.v2) return linear(x, name + ".qkv", 3 * width);
    const VarId weight =
        net_.parameter(name + ".qkv.weight", {3 * width, width}, init::normal(0.02));
    VarId bias = net_.parameter(name + ".qkv.bias", {3 * width}, init::constant(0));
    const auto part = [&](int64_t start) {
      return net_.apply("slice", {bias},
                        {{"axis", int64_t{0}}, {"start", start}, {"end", start + width}});
    };
    const VarId zeros = net_.apply("fill", {}, {{"shape", Integers{width}}});
    bias = net_.apply("concat", {part(0), zeros, part(2 * width)}, {{"axis", int64_t{0}}});
    return net_.apply("fc", {x, weight, bias}, {{"axis", int64_t{3}}});
  }

  // x / |x| of each head, as rms_norm: |x| is the root of the mean of the squares, times that of
  // their number. PyTorch's normalize divides by at least 1e-12.
  VarId normalised(VarId x) {
    const int64_t size = net_.shape(x)[3];
    const auto count = static_cast<double>(size);
    const VarId scale =
        net_.apply("fill", {}, {{"shape", Integers{size}}, {"value", 1 / std::sqrt(count)}});
    return net_.apply("rms_norm", {x, scale}, {{"epsilon", 1e-24 / count}});
  }

  // q e^min(s, ln 100), with a learned s of each head.
  VarId times_factor(VarId q, const std::string& name, int64_t heads) {
    VarId factor = net_.without_weight_decay(
        net_.parameter(name, {heads, 1, 1}, init::constant(std::numbers::ln10)));
    factor = net_.apply("clip", {factor}, {{"min", -1e30}, {"max", 2 * std::numbers::ln10}});
    return net_.apply("elementwise_mul", {q, net_.apply("exp", {factor})}, {{"axis", int64_t{1}}});
  }

  VarId computed_biases(const std::string& name, size_t stage, const Integers& window) {
    const int64_t trained = trained_.empty() ? 0 : trained_[stage];
    VarId x = net_.apply("window_coordinates", {},
                         {{"window", window}, {"trained", Integers{trained, trained}}});
    x = linear(net_.relu(linear(x, name + ".0", 512)), name + ".2", config_.heads[stage],
               /*bias=*/false);
    for (const char* layer : {".0.weight", ".2.weight"}) {
      net_.without_weight_decay(net_.program().find(name + layer));
    }
    return net_.apply("scale", {net_.activation("sigmoid", x)}, {{"scale", 16.0}});
  }

  Network& net_;
  const SwinConfig& config_;
  const double dropout_, stochastic_depth_;
  const int64_t window_;
  const bool timm_;
  const Integers trained_;
  const LayerNorm norm_;
  int64_t layers_ = 0, made_ = 0;
};

}  // namespace

void define_swin(ModelDef& def, const SwinConfig& config) {
  def.help = std::string("Swin Transformer") + (config.v2 ? " V2" : "") + ", torchvision's names";
  def.image = {3, config.image, config.image};
  def.schema =
      model_schema()
          .number("dropout", 0, 0, 0.99, "dropout rate in each attention and MLP")
          .number("stochastic_depth", config.stochastic_depth, 0, 0.99,
                  "probability that a sample skips the last block; lower for earlier blocks")
          .number("norm_epsilon", 1e-5, 1e-12, 1e-2,
                  "epsilon of the layer norms, with which the weights were trained")
          .integer("window", config.window, 1, 64, "rows and columns of a window, in tokens")
          .choice("window_rule", "torchvision", {"torchvision", "timm"},
                  "how to cut maps that windows do not fill: weights expect the rule of "
                  "their library");
  if (config.v2) {
    def.schema.integers("trained_windows", {},
                        "windows of the four stages in an earlier training, which scale the "
                        "coordinates; empty: those of this one");
  }
  def.build = image_classifier([config](Network& network, VarId image, const Settings& settings) {
    return SwinBuilder(network, config, settings).build(image, settings.integer("num_classes"));
  });
}

}  // namespace fleet
