#include "models/text/language_models.h"

#include <algorithm>

#include "base/error.h"
#include "base/file_status.h"
#include "base/regular_file.h"
#include "base/text_file.h"
#include "models/model.h"
#include "models/text/language_family.h"
#include "models/text/text_layers.h"

namespace fleet {
namespace {

constexpr char kClasses[] = "num_classes";  // the key
constexpr char kLabels[] = "num_labels";    // the field
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
  const bool unset_number = (key.path.starts_with("rope_parameters.") && value == Json(0.0)) ||
                            (key.min < 0 && value == Json(-1.0));
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

// The number of classes that the settings give, instead of the config.json's.
void set_classes(const Settings& settings, LanguageSource* source) {
  const int64_t classes = settings.has(kClasses) ? settings.integer(kClasses) : 0;
  if (classes == 0) return;
  const LanguageModel model = read_language_model(source->config, source->where);
  if (!model.encoder) {
    throw Error(ErrorCode::kUsage, "it is a " + model.family + ", which has no head for classes",
                "model.num_classes", "remove it, or use a bert, roberta or distilbert");
  }
  source->config[kLabels] = classes;
  if (model.encoder->num_classes == classes) return;
  for (const char* of_others : {"id2label", "label2id", "problem_type"}) {
    source->config.erase(of_others);
  }
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
    LanguageSource source{parsed_file(path, kLargestConfig), path, folder};
    set_classes(settings, &source);
    return source;
  }
  const LanguageFamily* family = language_family_registry().find(model);
  if (!family) return std::nullopt;
  LanguageSource source{config_of_settings(model, *family, settings), "model '" + model + "'", ""};
  set_classes(settings, &source);
  return source;
}

LanguageModel language_model_of(const LanguageSource& source, std::vector<std::string>* notes) {
  LanguageModel model = read_language_model(source.config, source.where, notes);
  check_tokenizer(source, model);
  return model;
}

static Schema classes_schema() {
  return Schema().integer(kClasses, 0, 0, 1e7,
                          "classes of an encoder's head for classes; 0: those of config.json "
                          "(id2label), or else 2");
}

int64_t classes_of_model(const std::string& model, const Settings& settings) {
  const int64_t given = settings.has(kClasses) ? settings.integer(kClasses) : 0;
  if (given > 0 || !settings.has(kClasses)) return given;
  const auto source = language_source(model, settings);
  const LanguageModel read = source ? language_model_of(*source) : LanguageModel();
  return read.encoder ? read.encoder->num_classes : 0;
}

static void set_ports(const ModelPorts& ports, ModelDef* def) {
  def->inputs = ports.inputs;
  def->outputs = ports.outputs;
  def->extras = ports.extras;
}

// Common part of the models of families and of `hf`.
static void define_as_model(const std::string& name, const std::string& help, const Schema& keys,
                            ModelDef* def) {
  def->help = help;
  def->schema = common_model_schema()
                    .boolean("sparse_embedding", false,
                             "exchange and update only the rows of the embedding that a step "
                             "reads; for a head of its own, and the optimizers sgd and adagrad")
                    .section("", keys);
  def->build = [name](Network& network, const NamedVars& inputs, const Settings& settings) {
    const std::optional<LanguageSource> source = language_source(name, settings);
    LanguageModel model = language_model_of(*source);
    model.sparse = settings.boolean("sparse_embedding");
    return build_language_model(network, inputs, model);
  };
}

NamedVars build_language_model(Network& network, const NamedVars& inputs,
                               const LanguageModel& model) {
  return model.encoder ? build_encoder(network, inputs, model)
                       : build_decoder(network, inputs, model);
}

bool register_language_family(const std::string& name, void (*define)(LanguageFamily&)) {
  language_family_registry().define(name, define);
  const LanguageFamily* family = language_family_registry().find(name);
  ModelDef model;
  Schema keys = family->schema;
  if (family->has_classes()) keys.section("", classes_schema());
  define_as_model(name, family->help, keys, &model);
  set_ports(family->ports, &model);
  return model_registry().define(
      name, [](ModelDef&) {}, std::move(model));
}

FLEET_MODEL(hf) {
  const Schema keys = Schema()
                          .text(kHuggingFaceFolder, "",
                                "a folder of Hugging Face's: config.json, and model.safetensors or "
                                "its shards and index, from which training starts")
                          .as_path()
                          .required()
                          .section("", classes_schema());
  define_as_model(kHuggingFaceModel,
                  "a language model in a folder of Hugging Face's: gpt2, llama, mistral, qwen2, "
                  "qwen3, bert, roberta or distilbert",
                  keys, &def);
  set_ports(LanguageFamily().ports, &def);
  def.ports = [](const Settings& settings) {
    const std::optional<LanguageSource> source = language_source(kHuggingFaceModel, settings);
    const LanguageModel model = read_language_model(source->config, source->where);
    return language_family_registry().get(model.family).ports;
  };
}

}  // namespace fleet
