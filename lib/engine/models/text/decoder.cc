// The network of a language model: pre-norm layers (Radford et al. 2019; Touvron et al. 2023).
#include <algorithm>

#include "base/error.h"
#include "models/text/language_models.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

// Salts of attention's dropout: behind those that Network::dropout() counts.
constexpr int64_t kAttentionSalts = int64_t{1} << 32;

class DecoderBuilder {
 public:
  DecoderBuilder(Network& network, const NamedVars& inputs, const LanguageModel& model)
      : net_(network), model_(model) {
    ids_ = find_var(inputs, "input_ids");
    positions_ = find_var(inputs, "position_ids");
    documents_ = find_var(inputs, "document_ids");
    sample_key_ = find_var(inputs, "sample_key");
    const int64_t length = net_.shape(ids_)[1];
    if (length > model.positions) {
      throw Error(ErrorCode::kUsage,
                  "sequences have " + std::to_string(length) + " tokens, but the model has " +
                      std::to_string(model.positions) + " positions",
                  model.family, "use shorter sequences, or a model for longer ones");
    }
    if (model.rope) {
      const std::vector<VarId> table = net_.apply_all("rope_table", {positions_}, *model.rope);
      cos_ = table[0];
      sin_ = table[1];
    }
  }

  NamedVars build() {
    VarId x = net_.block("embedding", embedding());
    for (int64_t i = 0; i < model_.layers; ++i) x = layer(x, i);
    const VarId hidden = norm(x, "model.norm");
    const VarId head = model_.tied ? table("model.embed_tokens.weight", model_.vocabulary)
                                   : table("lm_head.weight", model_.vocabulary);
    return {{"hidden", hidden}, {"head", head}};
  }

 private:
  VarId table(const std::string& name, int64_t rows) {
    return net_.parameter(name, {rows, model_.hidden}, init::normal(model_.deviation));
  }

  VarId embedding() {
    VarId x = net_.apply("embedding", {ids_, table("model.embed_tokens.weight", model_.vocabulary)},
                         {{"padding_idx", model_.padding_id}});
    if (!model_.rope) {
      const VarId weight = table("model.embed_positions.weight", model_.positions);
      x = net_.add(x, net_.apply("embedding", {positions_, weight}));
    }
    return net_.dropout(x, model_.embedding_dropout);
  }

  VarId layer(VarId x, int64_t index) {
    const std::string name = "model.layers." + std::to_string(index) + ".";
    VarId y = attention(norm(x, name + "input_layernorm"), name + "self_attn.", index);
    y = net_.dropout(y, model_.residual_dropout);
    const auto [normed, sum] = add_norm(y, x, name + "post_attention_layernorm");
    y = net_.dropout(mlp(normed, name + "mlp."), model_.residual_dropout);
    return net_.block("layers." + std::to_string(index), net_.add(sum, y));
  }

  std::vector<VarId> norm_parameters(const std::string& name, int64_t size) {
    std::vector<VarId> all = {net_.parameter(name + ".weight", {size}, init::constant(1))};
    if (model_.norm == NormKind::kLayer) {
      all.push_back(net_.parameter(name + ".bias", {size}, init::constant(0)));
    }
    return all;
  }

  VarId norm(VarId x, const std::string& name) {
    std::vector<VarId> inputs = norm_parameters(name, model_.hidden);
    inputs.insert(inputs.begin(), x);
    if (model_.norm == NormKind::kRms) {
      return net_.apply("rms_norm", inputs, {{"epsilon", model_.epsilon}});
    }
    return net_.apply("layer_norm", inputs,
                      {{"epsilon", model_.epsilon}, {"begin_norm_axis", int64_t{2}}});
  }

  // The norm of the sum, and the sum.
  std::pair<VarId, VarId> add_norm(VarId x, VarId residual, const std::string& name) {
    std::vector<VarId> inputs = norm_parameters(name, model_.hidden);
    inputs.insert(inputs.begin(), {x, residual});
    const char* type = model_.norm == NormKind::kRms ? "add_rms_norm" : "add_layer_norm";
    const std::vector<VarId> outputs = net_.apply_all(type, inputs, {{"epsilon", model_.epsilon}});
    return {outputs[0], outputs[1]};
  }

  VarId linear(VarId x, const std::string& name, int64_t features, bool bias, double deviation) {
    std::vector<VarId> inputs = {
        x, net_.parameter(name + ".weight", {features, net_.shape(x)[2]}, init::normal(deviation))};
    if (bias) inputs.push_back(net_.parameter(name + ".bias", {features}, init::constant(0)));
    return net_.apply("fc", inputs, {{"axis", int64_t{2}}});
  }

  // The heads [begin, end) of x, [B, S, heads, head_size].
  VarId heads(VarId x, int64_t begin, int64_t end) {
    return net_.apply("slice", {x}, {{"axis", int64_t{2}}, {"start", begin}, {"end", end}});
  }
  VarId head_norm(VarId x, const std::string& name) {
    const VarId scale = net_.parameter(name + ".weight", {model_.head_size}, init::constant(1));
    return net_.apply("rms_norm", {x, scale}, {{"epsilon", model_.epsilon}});
  }
  VarId rotated(VarId x, int64_t count) {
    return model_.rope ? net_.apply("rope", {x, cos_, sin_}, {{"heads", count}}) : x;
  }

  VarId attention(VarId x, const std::string& name, int64_t index) {
    const int64_t q = model_.heads, kv = model_.kv_heads, size = model_.head_size;
    x = linear(x, name + "qkv_proj", model_.qkv_heads() * size, model_.qkv_bias, model_.deviation);
    x = net_.reshape(x, {0, 0, model_.qkv_heads(), size});
    const auto layer = static_cast<size_t>(index);
    const double dropout = net_.training() ? model_.attention_dropout : 0;
    const Attributes attributes = {{"causal", true},
                                   {"window", model_.windows[layer]},
                                   {"scale", model_.scales[layer]},
                                   {"dropout", dropout},
                                   {"kv_heads", kv},
                                   {"salt", kAttentionSalts + index}};
    const VarId key = dropout > 0 ? sample_key_ : kNoVar;
    VarId y;
    if (model_.head_norms) {
      const VarId queries = head_norm(heads(x, 0, q), name + "q_norm"),
                  keys = head_norm(heads(x, q, q + kv), name + "k_norm");
      y = net_.apply(
          "attention",
          {rotated(queries, 0), rotated(keys, 0), heads(x, q + kv, q + 2 * kv), documents_, key},
          attributes);
    } else {
      y = net_.apply("attention", {rotated(x, q + kv), kNoVar, kNoVar, documents_, key},
                     attributes);
    }
    return linear(net_.reshape(y, {0, 0, q * size}), name + "o_proj", model_.hidden,
                  model_.output_bias, model_.residual_deviation);
  }

  VarId mlp(VarId x, const std::string& name) {
    const bool gated = model_.gated();
    x = linear(x, name + (gated ? "gate_up_proj" : "up_proj"), (gated ? 2 : 1) * model_.mlp,
               model_.mlp_bias, model_.deviation);
    Attributes attributes;
    if (model_.activation.ends_with("gelu") || model_.activation == "geglu") {
      attributes.set("approximate", model_.approximate);
    }
    x = net_.apply(model_.activation, {x}, attributes);
    return linear(x, name + "down_proj", model_.hidden, model_.mlp_bias, model_.residual_deviation);
  }

  Network& net_;
  const LanguageModel& model_;
  VarId ids_, positions_, documents_, sample_key_, cos_ = kNoVar, sin_ = kNoVar;
};

}  // namespace

NamedVars build_language_model(Network& network, const NamedVars& inputs,
                               const LanguageModel& model) {
  return DecoderBuilder(network, inputs, model).build();
}

}  // namespace fleet
