#include "hf/export.h"
#include "models/text/language_family.h"

namespace fleet {
namespace {

// The names of transformers 5 and of 4 for the same rope: 4.57 does not read rope_parameters, and
// without the others it would compute with theta = 10000 and no scaling.
void write_both_ropes(const LanguageModel& model, Json* config) {
  const char* found =
      config->contains("rope_parameters") && !config->at("rope_parameters").is_null()
          ? "rope_parameters"
          : "rope_scaling";
  Json rope = Json::object();
  if (const Json* given = config->find(found); given && given->is_object()) rope = *given;
  const std::string type = model.rope->text("type");
  const double theta = model.rope->number("theta");
  rope.erase("type");
  rope.erase("rope_theta");
  rope["rope_type"] = type;
  if (type == "llama3" || type == "yarn") {
    rope["original_max_position_embeddings"] =
        model.rope->integer("original_max_position_embeddings");
  }
  if (type != "default") rope["factor"] = model.rope->number("factor");
  (*config)["rope_scaling"] = type == "default" ? Json() : rope;
  rope["rope_theta"] = theta;
  (*config)["rope_parameters"] = rope;
  (*config)["rope_theta"] = theta;
}

}  // namespace

Json hugging_face_config(const LanguageModel& model, const Json& given, const std::string& dtype) {
  Json config = given;
  const LanguageFamily& family = language_family_registry().get(model.family);
  config["architectures"] = Json::array({family.architecture});
  config["model_type"] = model.family;
  config["dtype"] = dtype;
  config["torch_dtype"] = dtype;
  config["vocab_size"] = model.vocabulary;
  config["tie_word_embeddings"] = model.tied;
  config.erase("_name_or_path");
  config.erase("transformers_version");
  if (model.rope) write_both_ropes(model, &config);
  return config;
}

}  // namespace fleet
