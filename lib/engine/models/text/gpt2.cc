// GPT-2 (Radford et al. 2019): layer_norm, learned positions, an MLP with gelu, a tied head.
#include <cmath>

#include "base/text.h"
#include "models/text/language_family.h"

namespace fleet {
namespace {

std::vector<ConfigField> gpt2_fields() {
  std::vector<ConfigField> fields = fields_of_other_heads();
  for (const char* name : {"activation_function", "attn_pdrop", "embd_pdrop", "layer_norm_epsilon",
                           "n_embd", "n_head", "n_inner", "n_layer", "n_positions", "resid_pdrop",
                           "scale_attn_by_inverse_layer_idx", "scale_attn_weights"}) {
    fields.push_back({name, FieldUse::kHonoured});
  }
  // Of another head (GPT2DoubleHeadsModel), of old files, and of the order of float32 sums.
  for (const char* name :
       {"n_ctx", "n_special", "predict_special_tokens", "reorder_and_upcast_attn",
        "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
        "summary_use_proj", "gradient_checkpointing"}) {
    fields.push_back({name, FieldUse::kHarmless});
  }
  return fields;
}

Schema gpt2_schema() {
  constexpr double kMost = 1 << 30;
  return Schema()
      .integer("vocab_size", 50257, 1, kMost, "number of tokens")
      .integer("n_positions", 1024, 1, kMost, "tokens of the longest sequence")
      .integer("n_embd", 768, 1, kMost, "features of a token")
      .integer("n_layer", 12, 1, 10000, "number of layers")
      .integer("n_head", 12, 1, kMost, "heads of an attention")
      .integer("n_inner", 0, 0, kMost, "features inside an MLP; 0: 4 n_embd")
      .choice("activation_function", "gelu_new", {"gelu_new", "gelu", "relu", "silu"},
              "activation of an MLP")
      .number("embd_pdrop", 0.1, 0, 0.99, "dropout rate of the embeddings")
      .number("attn_pdrop", 0.1, 0, 0.99, "dropout rate of attention's probabilities")
      .number("resid_pdrop", 0.1, 0, 0.99, "dropout rate of the values that each layer adds")
      .number("layer_norm_epsilon", 1e-5, 0, 1, "added to variances")
      .number("initializer_range", 0.02, 0, 1e6, "standard deviation of initial weights")
      .boolean("scale_attn_weights", true, "divide scores by the square root of a head's size")
      .boolean("scale_attn_by_inverse_layer_idx", false, "divide scores of layer i by i + 1")
      .boolean("tie_word_embeddings", true, "the head is the embedding")
      .integer("bos_token_id", 50256, -1, kMost, "token that begins a text, for exports; -1: none")
      .integer("eos_token_id", 50256, -1, kMost, "token that ends a text, for exports; -1: none");
}

void read_gpt2_activation(const ModelConfig& config, LanguageModel* model) {
  const std::string name = config.text("activation_function", "gelu_new");
  model->approximate = name == "gelu_new" || name == "gelu_pytorch_tanh";
  model->activation = model->approximate ? "gelu" : name == "swish" ? "silu" : name;
  const std::string& own = model->activation;
  if (own == "gelu" || own == "relu" || own == "silu") return;
  config.refuse("activation_function", "is '" + name + "'",
                "known activations: gelu_new, gelu_pytorch_tanh, gelu, relu, silu");
}

LanguageModel read_gpt2(const ModelConfig& config) {
  LanguageModel model;
  model.vocabulary = config.integer("vocab_size", 50257, 1);
  model.hidden = config.integer("n_embd", 768, 1);
  model.layers = config.integer("n_layer", 12, 1, 10000);
  model.heads = model.kv_heads = config.integer("n_head", 12, 1);
  if (model.hidden % model.heads != 0) {
    config.refuse("n_embd", "is " + std::to_string(model.hidden),
                  "use a multiple of n_head, " + std::to_string(model.heads));
  }
  model.head_size = model.hidden / model.heads;
  model.mlp = config.integer("n_inner", 4 * model.hidden, 1);
  model.positions = config.integer("n_positions", 1024, 1);
  model.norm = NormKind::kLayer;
  model.epsilon = config.number("layer_norm_epsilon", 1e-5);
  model.qkv_bias = model.output_bias = model.mlp_bias = true;
  model.tied = config.boolean("tie_word_embeddings", true);
  model.embedding_dropout = config.rate("embd_pdrop", 0.1);
  model.attention_dropout = config.rate("attn_pdrop", 0.1);
  model.residual_dropout = config.rate("resid_pdrop", 0.1);
  model.deviation = config.number("initializer_range", 0.02);
  model.residual_deviation = model.deviation / std::sqrt(2 * static_cast<double>(model.layers));
  read_gpt2_activation(config, &model);
  model.windows.assign(static_cast<size_t>(model.layers), 0);
  const double scale = config.boolean("scale_attn_weights", true)
                           ? 1 / std::sqrt(static_cast<double>(model.head_size))
                           : 1;
  const bool by_layer = config.boolean("scale_attn_by_inverse_layer_idx", false);
  for (int64_t i = 0; i < model.layers; ++i) {
    model.scales.push_back(by_layer ? scale / static_cast<double>(i + 1) : scale);
  }
  return model;
}

std::vector<WeightPart> gpt2_parts(const LanguageModel& model) {
  std::vector<WeightPart> parts = {
      {"model.embed_tokens.weight", "transformer.wte.weight", model.vocabulary},
      {"model.embed_positions.weight", "transformer.wpe.weight", model.positions}};
  if (model.tied) parts[0].aliases = {"lm_head.weight"};
  const auto add_layer = [&](const std::string& ours, const std::string& theirs, int64_t rows,
                             bool transposed) {
    parts.push_back({ours + ".weight", theirs + ".weight", rows, transposed});
    parts.push_back({ours + ".bias", theirs + ".bias", rows});
  };
  for (int64_t i = 0; i < model.layers; ++i) {
    const std::string ours = "model.layers." + std::to_string(i) + ".",
                      theirs = "transformer.h." + std::to_string(i) + ".";
    add_layer(ours + "input_layernorm", theirs + "ln_1", model.hidden, false);
    add_layer(ours + "self_attn.qkv_proj", theirs + "attn.c_attn", 3 * model.hidden, true);
    add_layer(ours + "self_attn.o_proj", theirs + "attn.c_proj", model.hidden, true);
    add_layer(ours + "post_attention_layernorm", theirs + "ln_2", model.hidden, false);
    add_layer(ours + "mlp.up_proj", theirs + "mlp.c_fc", model.mlp, true);
    add_layer(ours + "mlp.down_proj", theirs + "mlp.c_proj", model.hidden, true);
  }
  add_layer("model.norm", "transformer.ln_f", model.hidden, false);
  if (!model.tied) parts.push_back({"lm_head.weight", "lm_head.weight", model.vocabulary});
  return parts;
}

}  // namespace

FLEET_LANGUAGE_FAMILY(gpt2) {
  def.help = "GPT-2, a language model; the keys are the fields of its config.json";
  def.architecture = "GPT2LMHeadModel";
  def.base = "transformer.";
  def.fields = gpt2_fields();
  def.schema = gpt2_schema();
  def.read = read_gpt2;
  def.parts = gpt2_parts;
}

}  // namespace fleet
