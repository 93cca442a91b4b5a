#include "models/text/language_models.h"

#include <algorithm>

#include "base/error.h"
#include "base/file_status.h"
#include "base/regular_file.h"
#include "base/text_file.h"
#include "models/model.h"
#include "models/text/language_family.h"

namespace fleet {
namespace {

constexpr int64_t kLargestConfig = int64_t{16} << 20, kLargestTokenizer = int64_t{256} << 20;

Json parsed_file(const std::string& path, int64_t most) {
  try {
    return Json::parse(read_text_file(path, most));
  } catch (const JsonError& error) {
    throw Error(ErrorCode::kUsage, std::string("is not valid JSON: ") + error.what(), path,
                "copy it again");
  }
}

// The member of an object at a dotted path; objects on the way are made.
Json& member_at(Json* object, std::string_view path) {
  const size_t dot = path.find('.');
  Json& member = (*object)[path.substr(0, dot)];
  return dot == std::string_view::npos ? member : member_at(&member, path.substr(dot + 1));
}

Json value_of(const Settings& settings, const ConfigKey& key) {
  switch (key.type) {
    case ConfigType::kBool:
      return settings.boolean(key.path);
    case ConfigType::kInteger:
      return settings.integer(key.path);
    case ConfigType::kNumber:
      return settings.number(key.path);
    case ConfigType::kTexts:
      return settings.texts(key.path);
    default:
      return settings.text(key.path);
  }
}

// Whether a key's value stands for a field that is null or missing.
bool stands_for_nothing(const ConfigKey& key, const Json& value) {
  if (key.path.ends_with("_token_id")) return value == Json(-1);
  const bool none_is_zero =
      key.min == 0 && key.type == ConfigType::kInteger && key.path != "max_window_layers";
  const bool unset_number = key.path.starts_with("rope_parameters.") && value == Json(0.0);
  return (none_is_zero && value == Json(0)) || unset_number || (value.is_array() && value.empty());
}

// The numbers of rope_parameters that a type uses.
void trim_rope(Json* config) {
  if (!config->contains("rope_parameters")) return;
  const Json all = config->at("rope_parameters");
  const std::string type = all.at("rope_type").get<std::string>();
  std::vector<std::string> used = {"rope_type", "rope_theta"};
  const auto add = [&](std::initializer_list<const char*> names) {
    used.insert(used.end(), names.begin(), names.end());
  };
  if (type != "default") add({"factor"});
  if (type == "llama3") {
    add({"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
  }
  if (type == "yarn") {
    add({"original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "mscale",
         "mscale_all_dim", "truncate"});
  }
  Json rope = Json::object();
  for (const std::string& name : used) {
    if (const Json* value = all.find(name)) rope[name] = *value;
  }
  (*config)["rope_parameters"] = rope;
}

Json config_of_settings(const std::string& name, const LanguageFamily& family,
                        const Settings& settings) {
  Json config = Json::object();
  config["architectures"] = Json::array({family.architecture});
  config["model_type"] = name;
  for (const ConfigKey& key : family.schema.keys()) {
    const Json value = value_of(settings, key);
    const bool nothing = stands_for_nothing(key, value);
    if (nothing && (key.path.starts_with("rope_parameters.") || value.is_array())) continue;
    member_at(&config, key.path) = nothing ? Json() : value;
  }
  trim_rope(&config);
  return config;
}

// The largest id of tokenizer.json, and its token.
struct LastToken {
  int64_t id = -1;
  std::string token;
  void add(const Json& number, const std::string& text) {
    if (!number.is_number_integer() || number.get<int64_t>() <= id) return;
    id = number.get<int64_t>();
    token = text;
  }
};

LastToken last_token(const Json& tokenizer) {
  LastToken last;
  const Json* model = tokenizer.find("model");
  const Json* vocabulary = model ? model->find("vocab") : nullptr;
  if (vocabulary && vocabulary->is_object()) {
    const Json* id = vocabulary->begin();
    for (const std::string& token : vocabulary->keys()) last.add(*id++, token);
  } else if (vocabulary && vocabulary->is_array()) {
    last.add(Json(static_cast<int64_t>(vocabulary->size()) - 1), "");
  }
  const Json* added = tokenizer.find("added_tokens");
  for (const Json& token : added && added->is_array() ? added->elements() : std::vector<Json>()) {
    if (const Json* id = token.find("id")) last.add(*id, token.value("content", std::string()));
  }
  return last;
}

void check_tokenizer(const LanguageSource& source, const LanguageModel& model) {
  const std::string path = source.folder + "/tokenizer.json";
  if (source.folder.empty() || !path_exists(path)) return;
  const LastToken last = last_token(parsed_file(path, kLargestTokenizer));
  if (last.id < model.vocabulary) return;
  throw Error(ErrorCode::kUsage,
              "token '" + last.token + "' has id " + std::to_string(last.id) +
                  ", but vocab_size of config.json is " + std::to_string(model.vocabulary),
              path, "use the tokenizer that belongs to the model");
}

}  // namespace

std::optional<LanguageSource> language_source(const std::string& model, const Settings& settings) {
  if (model == kHuggingFaceModel) {
    const std::string& folder = settings.text(kHuggingFaceFolder);
    const std::string path = folder + "/config.json";
    if (!path_exists(path)) {
      throw Error(ErrorCode::kNotFound, "does not exist", path,
                  "set model.folder to a folder of Hugging Face's: it has config.json, "
                  "model.safetensors and tokenizer.json");
    }
    return LanguageSource{parsed_file(path, kLargestConfig), path, folder};
  }
  const LanguageFamily* family = language_family_registry().find(model);
  if (!family) return std::nullopt;
  return LanguageSource{config_of_settings(model, *family, settings), "model '" + model + "'", ""};
}

LanguageModel language_model_of(const LanguageSource& source, std::vector<std::string>* notes) {
  LanguageModel model = read_language_model(source.config, source.where, notes);
  check_tokenizer(source, model);
  return model;
}

// Common part of the models of families and of `hf`.
static void define_as_model(const std::string& name, const std::string& help, const Schema& keys,
                            ModelDef* def) {
  def->help = help;
  def->schema = common_model_schema().section("", keys);
  def->inputs = {"input_ids", "position_ids", "document_ids"};
  def->outputs = {"hidden", "head"};
  def->build = [name](Network& network, const NamedVars& inputs, const Settings& settings) {
    const std::optional<LanguageSource> source = language_source(name, settings);
    return build_language_model(network, inputs, language_model_of(*source));
  };
}

bool register_language_family(const std::string& name, void (*define)(LanguageFamily&)) {
  language_family_registry().define(name, define);
  const LanguageFamily* family = language_family_registry().find(name);
  ModelDef model;
  define_as_model(name, family->help, family->schema, &model);
  return model_registry().define(
      name, [](ModelDef&) {}, std::move(model));
}

FLEET_MODEL(hf) {
  const Schema keys = Schema()
                          .text(kHuggingFaceFolder, "",
                                "a folder of Hugging Face's: config.json, and model.safetensors or "
                                "its shards and index, from which training starts")
                          .as_path()
                          .required();
  define_as_model(kHuggingFaceModel,
                  "a language model in a folder of Hugging Face's: gpt2, llama, mistral, qwen2 or "
                  "qwen3",
                  keys, &def);
}

}  // namespace fleet
