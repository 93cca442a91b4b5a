#include "models/text/language_family.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "models/text/language_models.h"

namespace fleet {
namespace {

std::vector<ConfigField> harmless(std::initializer_list<const char*> names) {
  std::vector<ConfigField> fields;
  for (const char* name : names) fields.push_back({name, FieldUse::kHarmless});
  return fields;
}

const ConfigField* find_field(const std::vector<ConfigField>& fields, const std::string& name) {
  const auto found = std::ranges::find(fields, name, &ConfigField::name);
  return found == fields.end() ? nullptr : &*found;
}

void check_field(const ConfigField& field, const Json& value, const ModelConfig& config) {
  if (field.use != FieldUse::kRefused) return;
  if (std::ranges::find(field.accepted, value) != field.accepted.end()) return;
  std::vector<std::string> accepted;
  for (const Json& one : field.accepted) accepted.push_back(one.dump_lossy());
  config.refuse(field.name, "is " + value.dump_lossy() + ", which is not supported",
                "use a model in which it is " + join(accepted, " or "));
}

void check_architecture(const LanguageFamily& family, const ModelConfig& config) {
  const auto& several = family.architectures;
  const std::string base =
      family.architecture.substr(0, family.architecture.find("ForCausalLM")).append("Model");
  const std::string shorter = family.architecture.substr(0, family.architecture.find("LMHead"));
  for (const std::string& name : config.texts("architectures")) {
    if (name == family.architecture || name == base || name == shorter + "Model") continue;
    if (std::ranges::find(several, name) != several.end()) continue;
    config.refuse("architectures", "is '" + name + "'",
                  "use a " + (several.empty() ? family.architecture : join(several, ", ")));
  }
}

}  // namespace

Registry<LanguageFamily>& language_family_registry() {
  static Registry<LanguageFamily> registry("language model family");
  return registry;
}

const std::vector<ConfigField>& common_config_fields() {
  static const std::vector<ConfigField> fields = [] {
    // Of files, types, training with transformers, and generation.
    std::vector<ConfigField> all = harmless({"_attn_implementation_autoset",
                                             "_name_or_path",
                                             "auto_map",
                                             "bad_words_ids",
                                             "begin_suppress_tokens",
                                             "bos_token_id",
                                             "chunk_size_feed_forward",
                                             "decoder_start_token_id",
                                             "diversity_penalty",
                                             "do_sample",
                                             "dtype",
                                             "early_stopping",
                                             "encoder_no_repeat_ngram_size",
                                             "eos_token_id",
                                             "exponential_decay_length_penalty",
                                             "finetuning_task",
                                             "forced_bos_token_id",
                                             "forced_eos_token_id",
                                             "length_penalty",
                                             "max_length",
                                             "min_length",
                                             "no_repeat_ngram_size",
                                             "num_beam_groups",
                                             "num_beams",
                                             "num_return_sequences",
                                             "output_attentions",
                                             "output_hidden_states",
                                             "output_scores",
                                             "prefix",
                                             "remove_invalid_values",
                                             "repetition_penalty",
                                             "return_dict",
                                             "return_dict_in_generate",
                                             "sep_token_id",
                                             "suppress_tokens",
                                             "task_specific_params",
                                             "temperature",
                                             "tf_legacy_loss",
                                             "tokenizer_class",
                                             "top_k",
                                             "top_p",
                                             "torch_dtype",
                                             "torchscript",
                                             "transformers_version",
                                             "typical_p",
                                             "use_bfloat16",
                                             "use_cache"});
    for (const char* name : {"architectures", "initializer_range", "model_type", "pad_token_id",
                             "tie_word_embeddings", "vocab_size"}) {
      all.push_back({name, FieldUse::kHonoured});
    }
    const std::vector<Json> off = {false, nullptr};
    all.push_back({"add_cross_attention", FieldUse::kRefused, off});
    all.push_back({"cross_attention_hidden_size", FieldUse::kRefused, {nullptr}});
    all.push_back({"is_encoder_decoder", FieldUse::kRefused, off});
    all.push_back({"pruned_heads", FieldUse::kRefused, {Json::object(), nullptr}});
    all.push_back({"quantization_config", FieldUse::kRefused, {nullptr}});
    all.push_back({"tie_encoder_decoder", FieldUse::kRefused, off});
    return all;
  }();
  return fields;
}

std::vector<ConfigField> fields_of_other_heads() {
  return harmless({"id2label", "is_decoder", "label2id", "num_labels", "problem_type"});
}

LanguageModel read_language_model(const Json& json, const std::string& where,
                                  std::vector<std::string>* notes) {
  const ModelConfig config(json, where);
  if (!json.is_object()) {
    throw Error(ErrorCode::kUsage, "is not a JSON object", where,
                "use the config.json that transformers writes");
  }
  const std::vector<std::string> known = language_family_registry().names();
  const std::string name = config.text("model_type", "");
  const LanguageFamily* family = language_family_registry().find(name);
  if (!family) {
    config.refuse("model_type", name.empty() ? "is missing" : "is '" + name + "'",
                  "known families: " + join(known, ", "));
  }
  check_architecture(*family, config);
  std::vector<std::string> unknown;
  for (const auto& [key, value] : json.items()) {
    const ConfigField* field = find_field(family->fields, key);
    if (!field) field = find_field(common_config_fields(), key);
    if (field) {
      check_field(*field, value, config);
    } else {
      unknown.push_back(key);
    }
  }
  if (notes && !unknown.empty()) {
    notes->push_back("without effect, because " + name +
                     " has no such fields: " + join_first(unknown, 5));
  }
  LanguageModel model = family->read(config);
  model.family = name;
  return model;
}

std::string architecture_of(const LanguageModel& model, const std::set<std::string>& outputs) {
  const LanguageFamily& family = language_family_registry().get(model.family);
  return family.architecture_of ? family.architecture_of(outputs) : family.architecture;
}

std::vector<WeightPart> weight_parts(const LanguageModel& model) {
  return language_family_registry().get(model.family).parts(model);
}

std::vector<WeightPart> weight_parts(const LanguageModel& model,
                                     const std::set<std::string>& outputs) {
  std::vector<WeightPart> parts = weight_parts(model);
  std::erase_if(parts, [&](const WeightPart& part) {
    return !part.outputs.empty() && std::ranges::none_of(part.outputs, [&](const auto& output) {
      return outputs.contains(output);
    });
  });
  return parts;
}

}  // namespace fleet
