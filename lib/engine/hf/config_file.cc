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

// The names of the classes, by which transformers knows their number. Without names of the data or
// of the model, those that transformers gives.
void write_classes(const LanguageModel& model, const std::set<std::string>& outputs,
                   const std::vector<std::string>& classes, Json* config) {
  const bool has_head = outputs.contains("logits") || outputs.contains("token_logits");
  const int64_t count = outputs.contains("span_logits") ? 2 : model.encoder->num_classes;
  const Json* own = config->find("id2label");
  const bool keeps = own && own->is_object() && static_cast<int64_t>(own->size()) == count;
  config->erase("num_labels");
  if (!has_head || (classes.empty() && keeps)) {
    if (keeps || !own) return;
    for (const char* field : {"id2label", "label2id"}) config->erase(field);
    return;
  }
  Json names = Json::object(), numbers = Json::object();
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = static_cast<int64_t>(classes.size()) == count
                                 ? classes[static_cast<size_t>(i)]
                                 : "LABEL_" + std::to_string(i);
    names[std::to_string(i)] = name;
    numbers[name] = i;
  }
  (*config)["id2label"] = names;
  (*config)["label2id"] = numbers;
}

}  // namespace

Json hugging_face_config(const LanguageModel& model, const Json& given, const std::string& dtype,
                         const std::set<std::string>& outputs,
                         const std::vector<std::string>& classes) {
  Json config = given;
  config["architectures"] = Json::array({architecture_of(model, outputs)});
  config["model_type"] = model.family;
  config["dtype"] = dtype;
  config["torch_dtype"] = dtype;
  config["vocab_size"] = model.vocabulary;
  config["tie_word_embeddings"] = model.tied;
  config.erase("_name_or_path");
  config.erase("transformers_version");
  if (model.rope) write_both_ropes(model, &config);
  if (model.encoder) write_classes(model, outputs, classes, &config);
  return config;
}

}  // namespace fleet
