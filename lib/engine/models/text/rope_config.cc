// rope_parameters of config.json (transformers 5), or rope_theta and rope_scaling (4 and before).
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "models/text/decoder_family.h"

namespace fleet {
namespace {

// The numbers of rope_parameters that become attributes of rope_table under the same name.
const std::vector<std::string> kRopeNumbers = {
    "factor",    "low_freq_factor", "high_freq_factor", "attention_factor",
    "beta_fast", "beta_slow",       "mscale",           "mscale_all_dim"};

void check_rope_names(const Json& rope, const ModelConfig& config) {
  std::vector<std::string> known = kRopeNumbers;
  known.insert(known.end(), {"rope_type", "type", "rope_theta", "partial_rotary_factor", "truncate",
                             "original_max_position_embeddings", "finetuned"});
  for (const std::string& key : rope.keys()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    config.refuse(key, "is not supported in its rope parameters", suggestion(key, known));
  }
}

// Positions that a stretched rope reaches.
int64_t reach_of(const std::string& type, const Attributes& rope, int64_t positions) {
  if (type != "linear" && type != "dynamic" && type != "yarn") return positions;
  const auto from = static_cast<double>(rope.integer("original_max_position_embeddings"));
  return std::max(positions, static_cast<int64_t>(std::floor(rope.number("factor") * from)));
}

}  // namespace

Attributes read_rope(const ModelConfig& outer, LanguageModel* model) {
  const char* name = outer.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const Json nothing = Json::object();
  const Json* found = outer.json().find(name);
  const Json& rope = found && !found->is_null() ? *found : nothing;
  if (!rope.is_object()) outer.refuse(name, "is " + rope.dump_lossy(), "set it to an object");
  const ModelConfig config(rope, outer.where() + ": " + name);
  check_rope_names(rope, config);
  const std::string type = config.text("rope_type", config.text("type", "default"));
  const double theta = config.number("rope_theta", outer.number("rope_theta", 10000));
  if (config.number("partial_rotary_factor", outer.number("partial_rotary_factor", 1)) != 1) {
    outer.refuse("partial_rotary_factor", "is not 1", "use a model that rotates whole heads");
  }
  Attributes attributes = {{"dim", model->head_size}, {"theta", theta}, {"type", type}};
  const std::vector<std::string> types = {"default", "linear", "dynamic", "llama3", "yarn"};
  if (std::ranges::find(types, type) == types.end()) {
    config.refuse("rope_type", "is '" + type + "'", "known types: " + join(types, ", "));
  }
  if (model->head_size % 2 != 0) {
    outer.refuse("head_dim", "is " + std::to_string(model->head_size), "rope needs an even size");
  }
  if (type == "default") return attributes;
  for (const std::string& key : kRopeNumbers) {
    if (config.has(key)) attributes.set(key, config.number(key, 0));
  }
  if (config.has("truncate")) attributes.set("truncate", config.boolean("truncate", true));
  const int64_t positions = model->positions;
  int64_t original = positions;
  if (type == "llama3" || type == "yarn") {
    original = outer.integer("original_max_position_embeddings",
                             config.integer("original_max_position_embeddings", positions, 1), 1);
  }
  attributes.set("original_max_position_embeddings", original);
  if (type == "yarn" && !config.has("factor")) {
    attributes.set("factor", static_cast<double>(positions) / static_cast<double>(original));
  } else if (!config.has("factor")) {
    config.refuse("factor", "is missing", "type " + type + " needs it");
  }
  model->positions = reach_of(type, attributes, positions);
  return attributes;
}

Schema rope_schema() {
  return Schema()
      .number("rope_parameters.rope_theta", 10000, 1, 1e12, "base of the wavelengths of rope")
      .choice("rope_parameters.rope_type", "default",
              {"default", "linear", "dynamic", "llama3", "yarn"},
              "how positions beyond those of an earlier training are stretched")
      .number("rope_parameters.factor", 1, 1, 1e6, "by how much; not of type default")
      .number("rope_parameters.low_freq_factor", 1, 0, 1e6, "of type llama3")
      .number("rope_parameters.high_freq_factor", 4, 0, 1e6, "of type llama3")
      .integer("rope_parameters.original_max_position_embeddings", 0, 0, 1e9,
               "positions of the earlier training, of types llama3 and yarn; 0: "
               "max_position_embeddings")
      .number("rope_parameters.attention_factor", 0, 0, 1e6,
              "factor of cos and sin, of type yarn; 0: computed from factor")
      .number("rope_parameters.beta_fast", 32, 0, 1e6, "of type yarn")
      .number("rope_parameters.beta_slow", 1, 0, 1e6, "of type yarn")
      .number("rope_parameters.mscale", 0, 0, 1e6, "of type yarn; 0: not used")
      .number("rope_parameters.mscale_all_dim", 0, 0, 1e6, "of type yarn; 0: not used")
      .boolean("rope_parameters.truncate", true, "round the bounds of type yarn");
}

}  // namespace fleet
