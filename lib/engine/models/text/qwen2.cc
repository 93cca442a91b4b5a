// Qwen2 (Yang et al. 2024): Llama with biases of queries, keys and values, and with windows in the
// upper layers.
#include "models/text/decoder_family.h"

namespace fleet {

FLEET_LANGUAGE_FAMILY(qwen2) {
  static const DecoderDefaults defaults = {
      .vocabulary = 151936, .mlp = 22016, .kv_heads = 32, .positions = 32768};
  def.help = "Qwen2, a language model; the keys are the fields of its config.json";
  def.architecture = "Qwen2ForCausalLM";
  def.base = "model.";
  def.fields = decoder_fields();
  for (ConfigField& field : qwen_window_fields()) def.fields.push_back(std::move(field));
  // In files of Qwen2.5; its models have none.
  def.fields.push_back({"use_mrope", FieldUse::kRefused, {false, nullptr}});
  def.schema = decoder_schema(defaults).section("", qwen_window_schema());
  def.read = [](const ModelConfig& config) {
    LanguageModel model = read_decoder(config, defaults);
    model.qkv_bias = true;
    read_qwen_windows(config, &model);
    return model;
  };
  def.parts = decoder_parts;
}

}  // namespace fleet
