// Common parts of the configurations of bert, roberta and distilbert.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "models/text/language_family.h"

namespace fleet {

// Defaults of a family's config.json.
struct EncoderDefaults {
  int64_t vocabulary = 30522;
  int64_t padding_id = 0;
  int64_t positions = 512;  // rows of the table
  int64_t types = 2;
};

// Fields of config.json that all of them have, and those of bert and roberta.
std::vector<ConfigField> encoder_fields();
std::vector<ConfigField> bert_fields();
// Keys of a job file for the latter.
Schema bert_schema(const EncoderDefaults& defaults);
// Reads bert_fields(). Names and dropouts of heads are still to be set.
LanguageModel read_bert(const ModelConfig& config, const EncoderDefaults& defaults);

// The parts of read_bert() that have the same fields in all families. Sets heads and scales from
// hidden; positions from the rows of the table behind `encoder->first_position`.
// heads: the field with their number; rows: max_position_embeddings.
void finish_encoder(const ModelConfig& config, const char* heads, int64_t rows,
                    LanguageModel* model);
// The activation of an MLP; the operation's name. kUsage if the field is another one.
std::string read_activation(const ModelConfig& config, const char* field, LanguageModel* model);

// The names of the layers of bert and of roberta, below `base`: "bert.".
void set_bert_names(const std::string& base, EncoderParts* parts);

// The parts of all parameters, with those of all heads.
std::vector<WeightPart> encoder_parts(const LanguageModel& model);

// Sets the common values of all families. stem: "Bert", the start of transformers' names.
void define_encoder(const std::string& stem, LanguageFamily* def);

}  // namespace fleet
