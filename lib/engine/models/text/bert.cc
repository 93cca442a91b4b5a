// BERT (Devlin et al. 2018): segments, learned positions, a pooler, heads for masked tokens and for
// the next sentence.
#include "models/text/encoder_family.h"

namespace fleet {

FLEET_LANGUAGE_FAMILY(bert) {
  static const EncoderDefaults defaults = {};
  def.help = "BERT, an encoder of texts; the keys are the fields of its config.json";
  def.base = "bert.";
  define_encoder("Bert", &def);
  def.ports.inputs.push_back("token_type_ids");
  def.ports.outputs.push_back("next_sentence_logits");
  def.fields = bert_fields();
  // Of files of multilingual BERT.
  for (const char* name : {"directionality", "pooler_fc_size", "pooler_num_attention_heads",
                           "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"}) {
    def.fields.push_back({name, FieldUse::kHarmless});
  }
  def.schema = bert_schema(defaults);
  def.read = [](const ModelConfig& config) {
    LanguageModel model = read_bert(config, defaults);
    EncoderParts& own = *model.encoder;
    set_bert_names("bert.", &own);
    own.segments = true;
    own.transform = "cls.predictions.transform.dense";
    own.transform_activation = model.activation;
    own.transform_approximate = model.approximate;
    own.transform_norm = "cls.predictions.transform.LayerNorm";
    own.decoder = "cls.predictions.decoder";
    own.decoder_bias = "cls.predictions.bias";
    own.next_sentence = "cls.seq_relationship";
    own.classes_dense = own.pooler;
    own.classes_activation = "tanh";
    own.classes = own.tokens;
    finish_encoder(config, "num_attention_heads",
                   config.integer("max_position_embeddings", defaults.positions, 1), &model);
    return model;
  };
}

}  // namespace fleet
