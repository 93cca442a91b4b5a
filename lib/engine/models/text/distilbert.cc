// DistilBERT (Sanh et al. 2019): BERT without segments and pooler, under other names.
#include "models/text/encoder_family.h"

namespace fleet {
namespace {

Schema distilbert_schema() {
  constexpr double kMost = 1 << 30;
  return Schema()
      .integer("vocab_size", 30522, 1, kMost, "number of tokens")
      .integer("dim", 768, 1, kMost, "features of a token")
      .integer("n_layers", 6, 1, 10000, "number of layers")
      .integer("n_heads", 12, 1, kMost, "heads of an attention")
      .integer("hidden_dim", 3072, 1, kMost, "features inside an MLP")
      .choice("activation", "gelu", {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"},
              "activation of an MLP")
      .number("dropout", 0.1, 0, 0.99, "dropout rate of the embeddings and of an MLP's result")
      .number("attention_dropout", 0.1, 0, 0.99, "dropout rate of attention's probabilities")
      .number("qa_dropout", 0.1, 0, 0.99, "dropout rate in front of the head for spans")
      .number("seq_classif_dropout", 0.2, 0, 0.99,
              "dropout rate in front of the head for classes of a text")
      .integer("max_position_embeddings", 512, 1, kMost, "tokens of the longest sequence")
      .number("initializer_range", 0.02, 0, 1e6, "standard deviation of initial weights")
      .boolean("tie_word_embeddings", true, "the head of masked tokens is the embedding")
      .integer("pad_token_id", 0, -1, kMost, "token whose embedding gets no gradient; -1: none");
}

void set_names(EncoderParts* own) {
  own->embeddings = "distilbert.embeddings.";
  own->layer = "distilbert.transformer.layer.";
  own->qkv = "attention.qkv_lin";
  own->query = "attention.q_lin";
  own->key = "attention.k_lin";
  own->value = "attention.v_lin";
  own->attention_output = "attention.out_lin";
  own->attention_norm = "sa_layer_norm";
  own->up = "ffn.lin1";
  own->down = "ffn.lin2";
  own->output_norm = "output_layer_norm";
  own->transform = "vocab_transform";
  own->transform_norm = "vocab_layer_norm";
  own->decoder = "vocab_projector";
  own->decoder_bias = "vocab_projector.bias";
  own->classes_dense = "pre_classifier";
  own->classes_activation = "relu";
  own->classes = own->tokens;
}

LanguageModel read_distilbert(const ModelConfig& config) {
  LanguageModel model;
  EncoderParts& own = model.encoder.emplace();
  set_names(&own);
  model.vocabulary = config.integer("vocab_size", 30522, 1);
  model.hidden = config.integer("dim", 768, 1);
  model.layers = config.integer("n_layers", 6, 1, 10000);
  model.heads = config.integer("n_heads", 12, 1);
  model.mlp = config.integer("hidden_dim", 3072, 1);
  model.epsilon = 1e-12;
  model.activation = own.transform_activation = read_activation(config, "activation", &model);
  own.transform_approximate = model.approximate;
  const bool none = config.is_null("pad_token_id");
  model.padding_id = none ? -1 : config.integer("pad_token_id", 0, -1, model.vocabulary - 1);
  model.embedding_dropout = model.residual_dropout = own.token_dropout =
      config.rate("dropout", 0.1);
  model.attention_dropout = config.rate("attention_dropout", 0.1);
  own.classes_dropout = config.rate("seq_classif_dropout", 0.2);
  own.span_dropout = config.rate("qa_dropout", 0.1);
  finish_encoder(config, "n_heads", config.integer("max_position_embeddings", 512, 1), &model);
  return model;
}

}  // namespace

FLEET_LANGUAGE_FAMILY(distilbert) {
  def.help = "DistilBERT, an encoder of texts; the keys are the fields of its config.json";
  def.base = "distilbert.";
  define_encoder("DistilBert", &def);
  def.fields = encoder_fields();
  for (const char* name : {"activation", "dim", "dropout", "hidden_dim", "n_heads", "n_layers",
                           "qa_dropout", "seq_classif_dropout"}) {
    def.fields.push_back({name});
  }
  // Of old files: the head is tied in all of them.
  for (const char* name : {"output_past", "tie_weights_"}) {
    def.fields.push_back({name, FieldUse::kHarmless});
  }
  def.fields.push_back({"sinusoidal_pos_embds", FieldUse::kRefused, {false, nullptr}});
  def.schema = distilbert_schema();
  def.read = read_distilbert;
}

}  // namespace fleet
