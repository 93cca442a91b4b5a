// Mistral (Jiang et al. 2023): Llama with a window in all layers.
#include <algorithm>

#include "models/text/decoder_family.h"

namespace fleet {

FLEET_LANGUAGE_FAMILY(mistral) {
  static const DecoderDefaults defaults = {.mlp = 14336, .kv_heads = 8, .positions = 131072};
  def.help = "Mistral, a language model; the keys are the fields of its config.json";
  def.architecture = "MistralForCausalLM";
  def.base = "model.";
  def.fields = decoder_fields();
  def.fields.push_back({"sliding_window"});
  def.schema = decoder_schema(defaults).integer("sliding_window", 4096, 0, 1 << 30,
                                                "tokens that a query sees; 0: all before it");
  def.read = [](const ModelConfig& config) {
    LanguageModel model = read_decoder(config, defaults);
    const bool none = config.is_null("sliding_window");
    const int64_t window = none ? 0 : config.integer("sliding_window", 4096, 1);
    std::ranges::fill(model.windows, window);
    return model;
  };
  def.parts = decoder_parts;
}

}  // namespace fleet
