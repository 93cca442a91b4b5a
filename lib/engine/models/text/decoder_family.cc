#include "models/text/decoder_family.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace fleet {

std::vector<ConfigField> decoder_fields() {
  std::vector<ConfigField> fields = fields_of_other_heads();
  for (const char* name :
       {"attention_dropout", "head_dim", "hidden_act", "hidden_size", "intermediate_size",
        "max_position_embeddings", "num_attention_heads", "num_hidden_layers",
        "num_key_value_heads", "original_max_position_embeddings", "partial_rotary_factor",
        "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta"}) {
    fields.push_back({name, FieldUse::kHonoured});
  }
  fields.push_back({"rope_interleaved", FieldUse::kRefused, {false, nullptr}});
  return fields;
}

Schema decoder_schema(const DecoderDefaults& defaults) {
  constexpr double kMost = 1 << 30;
  const auto size = [](int64_t value) { return static_cast<int64_t>(value); };
  return Schema()
      .integer("vocab_size", size(defaults.vocabulary), 1, kMost, "number of tokens")
      .integer("hidden_size", size(defaults.hidden), 1, kMost, "features of a token")
      .integer("intermediate_size", size(defaults.mlp), 1, kMost, "features inside an MLP")
      .integer("num_hidden_layers", size(defaults.layers), 1, 10000, "number of layers")
      .integer("num_attention_heads", size(defaults.heads), 1, kMost, "heads of queries")
      .integer("num_key_value_heads", size(defaults.kv_heads), 0, kMost,
               "heads of keys and of values; 0: as many as of queries")
      .integer("head_dim", size(defaults.head_size), 0, kMost,
               "features of a head; 0: hidden_size / num_attention_heads")
      .choice("hidden_act", "silu", {"silu", "gelu", "gelu_pytorch_tanh"},
              "activation of the gate of an MLP")
      .integer("max_position_embeddings", size(defaults.positions), 1, kMost,
               "tokens of the longest sequence")
      .number("initializer_range", 0.02, 0, 1e6, "standard deviation of initial weights")
      .number("rms_norm_eps", 1e-6, 0, 1, "added to mean squares")
      .boolean("tie_word_embeddings", false, "the head is the embedding")
      .integer("pad_token_id", -1, -1, kMost, "token whose embedding gets no gradient; -1: none")
      .integer("bos_token_id", -1, -1, kMost, "token that begins a text, for exports; -1: none")
      .integer("eos_token_id", -1, -1, kMost, "token that ends a text, for exports; -1: none")
      .number("attention_dropout", 0, 0, 0.99, "dropout rate of attention's probabilities")
      .section("", rope_schema());
}

namespace {

// null means "as many as heads"; a missing field has the family's default.
int64_t read_kv_heads(const ModelConfig& config, const DecoderDefaults& defaults, int64_t heads) {
  const bool all = config.is_null("num_key_value_heads");
  int64_t kv_heads = all ? heads : config.integer("num_key_value_heads", defaults.kv_heads, 0);
  if (kv_heads == 0) kv_heads = heads;
  if (heads % kv_heads != 0) {
    config.refuse("num_key_value_heads", "is " + std::to_string(kv_heads),
                  "use a divisor of num_attention_heads, " + std::to_string(heads));
  }
  return kv_heads;
}

int64_t read_head_size(const ModelConfig& config, const DecoderDefaults& defaults,
                       const LanguageModel& model) {
  const bool divided = config.is_null("head_dim");
  const int64_t size = divided ? 0 : config.integer("head_dim", defaults.head_size, 0);
  if (size > 0) return size;
  if (model.hidden % model.heads != 0) {
    config.refuse("hidden_size", "is " + std::to_string(model.hidden),
                  "use a multiple of num_attention_heads, " + std::to_string(model.heads) +
                      ", or set head_dim");
  }
  return model.hidden / model.heads;
}

void read_gated_activation(const ModelConfig& config, LanguageModel* model) {
  const std::string name = config.text("hidden_act", "silu");
  if (name == "silu" || name == "swish") {
    model->activation = "swiglu";
  } else if (name == "gelu" || name == "gelu_pytorch_tanh" || name == "gelu_new") {
    model->activation = "geglu";
    model->approximate = name != "gelu";
  } else {
    config.refuse("hidden_act", "is '" + name + "'",
                  "known activations: silu, gelu, gelu_pytorch_tanh");
  }
}

}  // namespace

LanguageModel read_decoder(const ModelConfig& config, const DecoderDefaults& defaults) {
  LanguageModel model;
  model.vocabulary = config.integer("vocab_size", defaults.vocabulary, 1);
  model.hidden = config.integer("hidden_size", defaults.hidden, 1);
  model.mlp = config.integer("intermediate_size", defaults.mlp, 1);
  model.layers = config.integer("num_hidden_layers", defaults.layers, 1, 10000);
  model.heads = config.integer("num_attention_heads", defaults.heads, 1);
  model.head_size = read_head_size(config, defaults, model);  // its advice changes the heads
  model.kv_heads = read_kv_heads(config, defaults, model.heads);
  model.positions = config.integer("max_position_embeddings", defaults.positions, 1);
  model.epsilon = config.number("rms_norm_eps", 1e-6);
  model.tied = config.boolean("tie_word_embeddings", false);
  model.padding_id = config.integer("pad_token_id", -1, -1, model.vocabulary - 1);
  model.attention_dropout = config.rate("attention_dropout", 0);
  model.deviation = config.number("initializer_range", 0.02);
  model.residual_deviation = model.deviation;
  read_gated_activation(config, &model);
  const auto layers = static_cast<size_t>(model.layers);
  model.windows.assign(layers, 0);
  model.scales.assign(layers, 0);
  model.rope = read_rope(config, &model);
  return model;
}

std::vector<ConfigField> qwen_window_fields() {
  std::vector<ConfigField> fields;
  for (const char* name :
       {"layer_types", "max_window_layers", "sliding_window", "use_sliding_window"}) {
    fields.push_back({name, FieldUse::kHonoured});
  }
  return fields;
}

Schema qwen_window_schema() {
  constexpr double kMost = 1 << 30;
  return Schema()
      .boolean("use_sliding_window", false, "layers from max_window_layers on have a window")
      .integer("sliding_window", 4096, 1, kMost, "tokens that a query sees in these layers")
      .integer("max_window_layers", 28, 0, 10000, "the first layer with a window")
      .texts("layer_types", {},
             "of each layer: full_attention or sliding_attention, instead of max_window_layers");
}

void read_qwen_windows(const ModelConfig& config, LanguageModel* model) {
  const bool none =
      !config.boolean("use_sliding_window", false) || config.is_null("sliding_window");
  const int64_t window = none ? 0 : config.integer("sliding_window", 4096, 1);
  const int64_t first = config.integer("max_window_layers", 28, 0);
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && types.size() != model->windows.size()) {
    config.refuse("layer_types", "has " + std::to_string(types.size()) + " layers",
                  "num_hidden_layers is " + std::to_string(model->layers));
  }
  for (size_t i = 0; i < model->windows.size(); ++i) {
    bool slides = static_cast<int64_t>(i) >= first;
    if (!types.empty()) {
      slides = types[i] == "sliding_attention";
      if (!slides && types[i] != "full_attention") {
        config.refuse("layer_types", "has '" + types[i] + "'",
                      "known types: full_attention, sliding_attention");
      }
    }
    if (slides) model->windows[i] = window;
  }
}

namespace {

void add_layer_parts(const LanguageModel& model, const std::string& layer,
                     std::vector<WeightPart>* parts) {
  const auto add = [&](const std::string& ours, const std::string& theirs, int64_t rows) {
    parts->push_back({layer + ours, layer + theirs, rows});
  };
  const int64_t q = model.heads * model.head_size, kv = model.kv_heads * model.head_size;
  const std::string attention = "self_attn.", mlp = "mlp.";
  add("input_layernorm.weight", "input_layernorm.weight", model.hidden);
  for (const char* kind : {".weight", ".bias"}) {
    const bool bias = kind == std::string(".bias");
    if (!bias || model.qkv_bias) {
      const std::string joined = attention + "qkv_proj" + kind;
      add(joined, attention + "q_proj" + kind, q);
      add(joined, attention + "k_proj" + kind, kv);
      add(joined, attention + "v_proj" + kind, kv);
    }
    const std::string output = attention + "o_proj" + kind;
    if (!bias || model.output_bias) add(output, output, model.hidden);
  }
  if (model.head_norms) {
    add(attention + "q_norm.weight", attention + "q_norm.weight", model.head_size);
    add(attention + "k_norm.weight", attention + "k_norm.weight", model.head_size);
  }
  add("post_attention_layernorm.weight", "post_attention_layernorm.weight", model.hidden);
  for (const char* kind : {".weight", ".bias"}) {
    if (kind == std::string(".bias") && !model.mlp_bias) continue;
    const std::string joined = mlp + "gate_up_proj" + kind, down = mlp + "down_proj" + kind;
    add(joined, mlp + "gate_proj" + kind, model.mlp);
    add(joined, mlp + "up_proj" + kind, model.mlp);
    add(down, down, model.hidden);
  }
}

}  // namespace

std::vector<WeightPart> decoder_parts(const LanguageModel& model) {
  const std::string embedding = "model.embed_tokens.weight", norm = "model.norm.weight",
                    head = "lm_head.weight";
  std::vector<WeightPart> parts = {{embedding, embedding, model.vocabulary}};
  if (model.tied) parts[0].aliases = {head};
  for (int64_t i = 0; i < model.layers; ++i) {
    add_layer_parts(model, "model.layers." + std::to_string(i) + ".", &parts);
  }
  parts.push_back({norm, norm, model.hidden});
  if (!model.tied) parts.push_back({head, head, model.vocabulary});
  return parts;
}

}  // namespace fleet
