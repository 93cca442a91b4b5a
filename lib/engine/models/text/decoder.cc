// The network of a decoder: pre-norm layers (Radford et al. 2019; Touvron et al. 2023).
#include "models/text/text_layers.h"

namespace fleet {
namespace {

class DecoderBuilder : TextLayers {
 public:
  DecoderBuilder(Network& network, const NamedVars& inputs, const LanguageModel& model)
      : TextLayers(network, inputs, model) {
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
  VarId embedding() {
    VarId x = net_.apply("embedding", {ids_, table("model.embed_tokens.weight", model_.vocabulary)},
                         {{"padding_idx", model_.padding_id}, {"sparse", model_.sparse}});
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
    VarId y;
    if (model_.head_norms) {
      const VarId queries = head_norm(heads(x, 0, q), name + "q_norm"),
                  keys = head_norm(heads(x, q, q + kv), name + "k_norm");
      const VarId turned = rotated(queries, 0), turned_keys = rotated(keys, 0);
      y = attend(turned, turned_keys, heads(x, q + kv, q + 2 * kv), index);
    } else {
      y = attend(rotated(x, q + kv), kNoVar, kNoVar, index);
    }
    return linear(net_.reshape(y, {0, 0, q * size}), name + "o_proj", model_.hidden,
                  model_.output_bias, model_.residual_deviation);
  }

  VarId mlp(VarId x, const std::string& name) {
    const bool gated = model_.gated();
    x = linear(x, name + (gated ? "gate_up_proj" : "up_proj"), (gated ? 2 : 1) * model_.mlp,
               model_.mlp_bias, model_.deviation);
    x = activation(model_.activation, model_.approximate, x);
    return linear(x, name + "down_proj", model_.hidden, model_.mlp_bias, model_.residual_deviation);
  }

  VarId cos_ = kNoVar, sin_ = kNoVar;
};

}  // namespace

NamedVars build_decoder(Network& network, const NamedVars& inputs, const LanguageModel& model) {
  return DecoderBuilder(network, inputs, model).build();
}

}  // namespace fleet
