// The models of a job file that are language models: one for each family, with sizes as keys, and
// "hf", a folder of Hugging Face's.
#pragma once

#include <optional>
#include <string>

#include "base/config.h"
#include "base/json.h"
#include "models/named_vars.h"
#include "models/network.h"
#include "models/text/language_model.h"

namespace fleet {

struct LanguageSource {
  Json config;         // as a config.json
  std::string where;   // the file, or the model
  std::string folder;  // a folder of Hugging Face's; "": the job file has the sizes
};

// The language model that these settings describe; nullopt for another model. A number of classes
// in the settings replaces that of the config.json. kUsage or kNotFound naming the file, kUsage for
// classes of a model without a head for them.
std::optional<LanguageSource> language_source(const std::string& model, const Settings& settings);

// The language model of a job. notes: see read_language_model(). kUsage if the source is wrong, or
// if its tokenizer.json has tokens beyond its vocabulary.
LanguageModel language_model_of(const LanguageSource& source,
                                std::vector<std::string>* notes = nullptr);

// Appends the network. inputs: "input_ids" and "position_ids", int64 [B, S]; "document_ids", int64
// [B, S], if documents are packed or padded, and "sample_key", int64 [B], if there is dropout.
// Returns "hidden", [B, S, hidden], after the last norm, and of a decoder "head", the parameter
// [vocabulary, hidden]. An encoder also reads "token_type_ids" [B, S], without which all tokens are
// of type 0, and "masked_positions" [B, M], and returns the outputs that the network wants (see
// models/model.h). Parameters have the names of WeightPart::parameter. kUsage if S exceeds
// model.positions.
NamedVars build_language_model(Network& network, const NamedVars& inputs,
                               const LanguageModel& model);

// The names of model "hf" and of its key.
inline constexpr char kHuggingFaceModel[] = "hf", kHuggingFaceFolder[] = "folder";

// The classes of a model: the key num_classes, or else those of an encoder's config.json; 0 for a
// model without classes. Errors of language_source().
int64_t classes_of_model(const std::string& model, const Settings& settings);

}  // namespace fleet
