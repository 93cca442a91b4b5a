// Llama (Touvron et al. 2023): rms_norm, rope, grouped queries, gated MLP.
#include "models/text/decoder_family.h"

namespace fleet {

FLEET_LANGUAGE_FAMILY(llama) {
  static const DecoderDefaults defaults = {};
  def.help = "Llama, a language model; the keys are the fields of its config.json";
  def.architecture = "LlamaForCausalLM";
  def.base = "model.";
  def.fields = decoder_fields();
  def.fields.push_back({"attention_bias"});
  def.fields.push_back({"mlp_bias"});
  // Of files of SmolLM2, and of a split of products that leaves them the same.
  def.fields.push_back({"is_llama_config", FieldUse::kHarmless});
  def.fields.push_back({"pretraining_tp", FieldUse::kHarmless});
  def.schema = decoder_schema(defaults)
                   .boolean("attention_bias", false, "biases of queries, keys, values and outputs")
                   .boolean("mlp_bias", false, "biases of the MLP's layers");
  def.read = [](const ModelConfig& config) {
    LanguageModel model = read_decoder(config, defaults);
    model.qkv_bias = model.output_bias = config.boolean("attention_bias", false);
    model.mlp_bias = config.boolean("mlp_bias", false);
    return model;
  };
  def.parts = decoder_parts;
}

}  // namespace fleet
