// Families of language models: how transformers describes each in its config.json.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/json.h"
#include "base/registry.h"
#include "models/model.h"
#include "models/text/language_model.h"

namespace fleet {

enum class FieldUse {
  kHonoured,
  kHarmless,  // has no effect on results: any value is accepted
  kRefused,   // other values than `accepted` would change it in a way that we do not compute
};

// A field of config.json.
struct ConfigField {
  std::string name;
  FieldUse use = FieldUse::kHonoured;
  std::vector<Json> accepted = {};  // kRefused: the values that change nothing
};

// The fields of a config.json, checked as they are read. A field that is missing or null has its
// default. All functions throw kUsage naming the file and the field.
class ModelConfig {
 public:
  // where: the file, or the model of the job file. Keeps a reference to `json`.
  ModelConfig(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  bool has(std::string_view name) const;  // and is not null
  bool is_null(std::string_view name) const;
  int64_t integer(std::string_view name, std::optional<int64_t> initial, int64_t least,
                  int64_t most = int64_t{1} << 40) const;
  double number(std::string_view name, double initial) const;
  double rate(std::string_view name, double initial) const;  // within [0, 1)
  bool boolean(std::string_view name, bool initial) const;
  std::string text(std::string_view name, const std::string& initial) const;
  std::vector<std::string> texts(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& what,
                           const std::string& next) const;
  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }

 private:
  const Json* find(std::string_view name) const;
  const Json& json_;
  const std::string where_;
};

struct LanguageFamily {
  std::string help;          // one line
  std::string architecture;  // name in transformers: "LlamaForCausalLM", "BertModel"
  // Of a family with several heads: the name in transformers of a network with these outputs, and
  // all names that may be read. Null and empty: `architecture` alone.
  std::function<std::string(const std::set<std::string>& outputs)> architecture_of;
  std::vector<std::string> architectures;
  std::string base;                 // prefix of the names of its weights: "model."
  std::vector<ConfigField> fields;  // besides common_config_fields()
  Schema schema;                    // the keys of a model of this family in a job file
  // The model that checked fields describe.
  std::function<LanguageModel(const ModelConfig&)> read;
  // The names and parts of a layer's and of all other parameters; see weight_parts().
  std::function<std::vector<WeightPart>(const LanguageModel&)> parts;
  ModelPorts ports = {{"input_ids", "position_ids", "document_ids"}, {"hidden", "head"}};
  bool has_classes() const { return ports.gives({"logits"}); }
};

Registry<LanguageFamily>& language_family_registry();

// FLEET_LANGUAGE_FAMILY(llama) { def.read = ...; } in lib/engine/models/text/llama.cc also
// registers a model of this name, with def.schema as its keys.
bool register_language_family(const std::string& name, void (*define)(LanguageFamily&));
#define FLEET_LANGUAGE_FAMILY(name)                                    \
  FLEET_REGISTER(language_family_##name, ::fleet::LanguageFamily& def, \
                 ::fleet::register_language_family, #name)

// The name in transformers of a model with these outputs.
std::string architecture_of(const LanguageModel& model, const std::set<std::string>& outputs);

// The fields that transformers writes for every model.
const std::vector<ConfigField>& common_config_fields();
// Those that have no effect on a decoder, which has no head for classes.
std::vector<ConfigField> fields_of_other_heads();

// The model that a config.json describes. notes: gets a line about fields that are not known, which
// have no effect, as in transformers; may be null. kUsage naming the file and the first field that
// is refused, or the families if it is of another one.
LanguageModel read_language_model(const Json& config, const std::string& where,
                                  std::vector<std::string>* notes = nullptr);

}  // namespace fleet
