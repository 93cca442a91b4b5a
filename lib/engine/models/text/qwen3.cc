// Qwen3 (Yang et al. 2025): rms_norm of each head of queries and keys; heads of any size.
#include "models/text/decoder_family.h"

namespace fleet {

FLEET_LANGUAGE_FAMILY(qwen3) {
  static const DecoderDefaults defaults = {
      .vocabulary = 151936, .mlp = 22016, .kv_heads = 32, .head_size = 128, .positions = 32768};
  def.help = "Qwen3, a language model; the keys are the fields of its config.json";
  def.architecture = "Qwen3ForCausalLM";
  def.base = "model.";
  def.fields = decoder_fields();
  for (ConfigField& field : qwen_window_fields()) def.fields.push_back(std::move(field));
  def.fields.push_back({"attention_bias"});
  def.schema = decoder_schema(defaults)
                   .section("", qwen_window_schema())
                   .boolean("attention_bias", false, "biases of queries, keys, values and outputs");
  def.read = [](const ModelConfig& config) {
    LanguageModel model = read_decoder(config, defaults);
    model.qkv_bias = model.output_bias = config.boolean("attention_bias", false);
    model.head_norms = true;
    read_qwen_windows(config, &model);
    return model;
  };
  def.parts = decoder_parts;
}

}  // namespace fleet
