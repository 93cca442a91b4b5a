// RoBERTa (Liu et al. 2019): BERT without segments; positions start behind the padding token's row.
#include "models/text/encoder_family.h"

namespace fleet {

FLEET_LANGUAGE_FAMILY(roberta) {
  static const EncoderDefaults defaults = {.vocabulary = 50265, .padding_id = 1};
  def.help = "RoBERTa, an encoder of texts; the keys are the fields of its config.json";
  def.base = "roberta.";
  define_encoder("Roberta", &def);
  def.fields = bert_fields();
  def.schema =
      bert_schema(defaults)
          .integer("bos_token_id", 0, -1, 1 << 30,
                   "token that begins a text, for exports; -1: none")
          .integer("eos_token_id", 2, -1, 1 << 30, "token that ends a text, for exports; -1: none");
  def.read = [](const ModelConfig& config) {
    LanguageModel model = read_bert(config, defaults);
    EncoderParts& own = *model.encoder;
    if (model.padding_id < 0) {
      config.refuse("pad_token_id", "is not set", "set it: positions start behind it");
    }
    set_bert_names("roberta.", &own);
    own.first_position = model.padding_id + 1;
    own.transform = "lm_head.dense";
    own.transform_activation = "gelu";
    own.transform_norm = "lm_head.layer_norm";
    own.decoder = "lm_head.decoder";
    own.decoder_bias = "lm_head.bias";
    own.classes_dense = "classifier.dense";
    own.classes_activation = "tanh";
    own.classes = "classifier.out_proj";
    own.classes_dropout_first = true;
    finish_encoder(config, "num_attention_heads",
                   config.integer("max_position_embeddings", defaults.positions, 1), &model);
    return model;
  };
}

}  // namespace fleet
