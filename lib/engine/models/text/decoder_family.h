// Common parts of the configurations of llama, mistral, qwen2 and qwen3.
#pragma once

#include "models/text/language_family.h"

namespace fleet {

// Defaults of a family's config.json.
struct DecoderDefaults {
  int64_t vocabulary = 32000, hidden = 4096, mlp = 11008, layers = 32, heads = 32;
  int64_t kv_heads = 0;   // 0: as many as heads
  int64_t head_size = 0;  // 0: hidden / heads
  int64_t positions = 2048;
};

// Fields of config.json that all of them have.
std::vector<ConfigField> decoder_fields();
// Keys of a job file for these.
Schema decoder_schema(const DecoderDefaults& defaults);
// Reads decoder_fields(). No window in any layer.
LanguageModel read_decoder(const ModelConfig& config, const DecoderDefaults& defaults);

// Fields and keys of the windows of qwen2 and qwen3, and their reading.
std::vector<ConfigField> qwen_window_fields();
Schema qwen_window_schema();
void read_qwen_windows(const ModelConfig& config, LanguageModel* model);

// The names of transformers' Llama, for all of them.
std::vector<WeightPart> decoder_parts(const LanguageModel& model);

// The attributes of rope_table: of rope_parameters, or of rope_theta and rope_scaling in older
// files. May raise model->positions: a type that stretches positions reaches further.
Attributes read_rope(const ModelConfig& config, LanguageModel* model);
Schema rope_schema();

}  // namespace fleet
