#include "models/text/encoder_family.h"

#include <algorithm>

#include "base/error.h"

namespace fleet {
namespace {

constexpr double kMost = 1 << 30;

// The heads of transformers' classes, the first that fits: the outputs that a class has, and its
// name behind the family's.
struct HeadClass {
  std::vector<std::string> outputs;
  const char* name;
};
// In a function: families are defined before namespaces are initialized.
const std::vector<HeadClass>& head_classes() {
  static const std::vector<HeadClass> all = {
      {{"masked_hidden", "next_sentence_logits"}, "ForPreTraining"},
      {{"masked_hidden"}, "ForMaskedLM"},
      {{"next_sentence_logits"}, "ForNextSentencePrediction"},
      {{"logits"}, "ForSequenceClassification"},
      {{"token_logits"}, "ForTokenClassification"},
      {{"span_logits"}, "ForQuestionAnswering"},
      {{}, "Model"}};
  return all;
}

void add_honoured(std::initializer_list<const char*> names, std::vector<ConfigField>* fields) {
  for (const char* name : names) fields->push_back({name, FieldUse::kHonoured});
}

// The names in id2label, by class; empty without any.
std::vector<std::string> read_class_names(const ModelConfig& config) {
  const Json* names = config.json().find("id2label");
  if (!names || names->is_null()) return {};
  std::vector<std::string> all;
  const int64_t count = names->is_object() ? static_cast<int64_t>(names->size()) : 0;
  for (int64_t i = 0; i < count; ++i) {
    const Json* name = names->find(std::to_string(i));
    if (name && name->is_string()) all.push_back(name->get<std::string>());
  }
  if (count > 0 && std::ssize(all) == count) return all;
  config.refuse("id2label", "is " + names->dump_lossy(), "set it to names by number, from 0 on");
}

// num_labels, or the number of names; 2 without either, as in transformers.
void read_classes(const ModelConfig& config, EncoderParts* parts) {
  parts->class_names = read_class_names(config);
  const int64_t named = std::ssize(parts->class_names);
  parts->num_classes = config.integer("num_labels", named > 0 ? named : 2, 1);
  if (parts->num_classes != named) parts->class_names.clear();
}

// Joins what two heads share, as the classifier of texts and that of tokens.
void add_part(WeightPart part, std::vector<WeightPart>* parts) {
  const auto same = std::ranges::find(*parts, part.parameter, &WeightPart::parameter);
  if (same == parts->end() || part.outputs.empty()) return parts->push_back(std::move(part));
  same->outputs.insert(same->outputs.end(), part.outputs.begin(), part.outputs.end());
}

class PartList {
 public:
  // rows: the size of weight and bias.
  void layer(const std::string& ours, const std::string& theirs, int64_t rows,
             const std::vector<std::string>& outputs = {}) {
    for (const char* kind : {".weight", ".bias"}) add(ours + kind, theirs + kind, rows, outputs);
  }
  void add(const std::string& ours, const std::string& theirs, int64_t rows,
           const std::vector<std::string>& outputs = {}) {
    add_part({.parameter = ours, .name = theirs, .rows = rows, .outputs = outputs}, &parts);
  }

  std::vector<WeightPart> parts;
};

void add_layer(const LanguageModel& model, int64_t index, PartList* list) {
  const EncoderParts& own = *model.encoder;
  const std::string name = own.layer + std::to_string(index) + ".";
  const auto layer = [&](const std::string& of, int64_t rows) {
    list->layer(name + of, name + of, rows);
  };
  for (const char* kind : {".weight", ".bias"}) {
    for (const std::string& part : {own.query, own.key, own.value}) {
      list->add(name + own.qkv + kind, name + part + kind, model.hidden);
    }
  }
  layer(own.attention_output, model.hidden);
  layer(own.attention_norm, model.hidden);
  layer(own.up, model.mlp);
  layer(own.down, model.hidden);
  layer(own.output_norm, model.hidden);
}

void add_masked_head(const LanguageModel& model, PartList* list) {
  const EncoderParts& own = *model.encoder;
  const std::vector<std::string> outputs = {"masked_hidden"};
  list->layer(own.transform, own.transform, model.hidden, outputs);
  list->layer(own.transform_norm, own.transform_norm, model.hidden, outputs);
  const std::string weight = own.decoder + ".weight";
  if (model.tied) {
    list->parts.front().aliases = {weight};
  } else {
    list->add(weight, weight, model.vocabulary, outputs);
  }
  list->add(own.decoder_bias, own.decoder_bias, model.vocabulary, outputs);
  if (own.other_bias.empty()) return;
  list->parts.back().aliases = {own.other_bias};
  list->parts.back().under_aliases = !model.tied;
}

}  // namespace

std::vector<ConfigField> encoder_fields() {
  std::vector<ConfigField> fields;
  add_honoured({"attention_dropout", "id2label", "label2id", "max_position_embeddings",
                "num_labels", "problem_type"},
               &fields);
  fields.push_back({"gradient_checkpointing", FieldUse::kHarmless});
  fields.push_back({"is_decoder", FieldUse::kRefused, {false, nullptr}});
  return fields;
}

std::vector<ConfigField> bert_fields() {
  std::vector<ConfigField> fields = encoder_fields();
  std::erase_if(fields, [](const ConfigField& field) { return field.name == "attention_dropout"; });
  add_honoured({"attention_probs_dropout_prob", "classifier_dropout", "hidden_act",
                "hidden_dropout_prob", "hidden_size", "intermediate_size", "layer_norm_eps",
                "num_attention_heads", "num_hidden_layers", "type_vocab_size"},
               &fields);
  fields.push_back({"position_embedding_type", FieldUse::kRefused, {"absolute", nullptr}});
  return fields;
}

Schema bert_schema(const EncoderDefaults& defaults) {
  return Schema()
      .integer("vocab_size", defaults.vocabulary, 1, kMost, "number of tokens")
      .integer("hidden_size", 768, 1, kMost, "features of a token")
      .integer("num_hidden_layers", 12, 1, 10000, "number of layers")
      .integer("num_attention_heads", 12, 1, kMost, "heads of an attention")
      .integer("intermediate_size", 3072, 1, kMost, "features inside an MLP")
      .choice("hidden_act", "gelu", {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"},
              "activation of an MLP")
      .number("hidden_dropout_prob", 0.1, 0, 0.99,
              "dropout rate of the embeddings and of the values that each layer adds")
      .number("attention_probs_dropout_prob", 0.1, 0, 0.99,
              "dropout rate of attention's probabilities")
      .number("classifier_dropout", -1, -1, 0.99,
              "dropout rate in front of a head for classes; -1: hidden_dropout_prob")
      .integer("max_position_embeddings", defaults.positions, 1, kMost,
               "rows of the table of positions")
      .integer("type_vocab_size", defaults.types, 1, kMost, "number of segments")
      .number("initializer_range", 0.02, 0, 1e6, "standard deviation of initial weights")
      .number("layer_norm_eps", 1e-12, 1e-30, 1, "added to variances")
      .boolean("tie_word_embeddings", true, "the head of masked tokens is the embedding")
      .integer("pad_token_id", defaults.padding_id, -1, kMost,
               "token whose embedding gets no gradient; -1: none");
}

std::string read_activation(const ModelConfig& config, const char* field, LanguageModel* model) {
  const std::string name = config.text(field, "gelu");
  model->approximate = name == "gelu_new" || name == "gelu_pytorch_tanh";
  const std::string own = model->approximate ? "gelu" : name == "swish" ? "silu" : name;
  if (own == "gelu" || own == "relu" || own == "silu") return own;
  config.refuse(field, "is '" + name + "'",
                "known activations: gelu, gelu_new, gelu_pytorch_tanh, relu, silu");
}

void finish_encoder(const ModelConfig& config, const char* heads, int64_t rows,
                    LanguageModel* model) {
  EncoderParts& own = *model->encoder;
  if (model->hidden % model->heads != 0) {
    config.refuse(heads, "is " + std::to_string(model->heads),
                  "use a divisor of the features of a token, " + std::to_string(model->hidden));
  }
  if (rows <= own.first_position) {
    config.refuse("max_position_embeddings", "is " + std::to_string(rows),
                  "use more than " + std::to_string(own.first_position));
  }
  model->kv_heads = model->heads;
  model->head_size = model->hidden / model->heads;
  model->positions = rows - own.first_position;
  model->norm = NormKind::kLayer;
  model->qkv_bias = model->output_bias = model->mlp_bias = true;
  model->tied = config.boolean("tie_word_embeddings", true);
  model->deviation = model->residual_deviation = config.number("initializer_range", 0.02);
  model->windows.assign(static_cast<size_t>(model->layers), 0);
  model->scales.assign(static_cast<size_t>(model->layers), 0);
  read_classes(config, &own);
  // transformers 4 ties the two names of the bias always, transformers 5 with tied weights only,
  // and else computes with that of the decoder.
  const std::string bias = own.decoder + ".bias";
  if (bias != own.decoder_bias) own.other_bias = bias;
  if (!model->tied && !own.other_bias.empty()) std::swap(own.decoder_bias, own.other_bias);
}

LanguageModel read_bert(const ModelConfig& config, const EncoderDefaults& defaults) {
  LanguageModel model;
  EncoderParts& own = model.encoder.emplace();
  model.vocabulary = config.integer("vocab_size", defaults.vocabulary, 1);
  model.hidden = config.integer("hidden_size", 768, 1);
  model.layers = config.integer("num_hidden_layers", 12, 1, 10000);
  model.heads = config.integer("num_attention_heads", 12, 1);
  model.mlp = config.integer("intermediate_size", 3072, 1);
  model.epsilon = config.number("layer_norm_eps", 1e-12);
  model.activation = read_activation(config, "hidden_act", &model);
  const bool none = config.is_null("pad_token_id");
  model.padding_id =
      none ? -1 : config.integer("pad_token_id", defaults.padding_id, -1, model.vocabulary - 1);
  const double dropout = config.rate("hidden_dropout_prob", 0.1);
  model.embedding_dropout = model.residual_dropout = own.attended_dropout = dropout;
  model.attention_dropout = config.rate("attention_probs_dropout_prob", 0.1);
  own.token_dropout = own.classes_dropout =
      config.has("classifier_dropout") ? config.rate("classifier_dropout", 0.1) : dropout;
  own.types = config.integer("type_vocab_size", defaults.types, 1);
  return model;
}

void set_bert_names(const std::string& base, EncoderParts* parts) {
  parts->embeddings = base + "embeddings.";
  parts->layer = base + "encoder.layer.";
  parts->qkv = "attention.self.qkv";
  parts->query = "attention.self.query";
  parts->key = "attention.self.key";
  parts->value = "attention.self.value";
  parts->attention_output = "attention.output.dense";
  parts->attention_norm = "attention.output.LayerNorm";
  parts->up = "intermediate.dense";
  parts->down = "output.dense";
  parts->output_norm = "output.LayerNorm";
  parts->pooler = base + "pooler.dense";
}

std::vector<WeightPart> encoder_parts(const LanguageModel& model) {
  const EncoderParts& own = *model.encoder;
  PartList list;
  const auto table = [&](const std::string& name, int64_t rows) {
    list.add(own.embeddings + name + ".weight", own.embeddings + name + ".weight", rows);
  };
  table("word_embeddings", model.vocabulary);
  table("position_embeddings", own.first_position + model.positions);
  if (own.types > 0) table("token_type_embeddings", own.types);
  list.layer(own.embeddings + "LayerNorm", own.embeddings + "LayerNorm", model.hidden);
  for (int64_t i = 0; i < model.layers; ++i) add_layer(model, i, &list);
  const auto head = [&](const std::string& name, int64_t rows,
                        const std::vector<std::string>& outputs) {
    if (!name.empty()) list.layer(name, name, rows, outputs);
  };
  std::vector<std::string> pooling = {"pooled"};
  if (!own.next_sentence.empty()) pooling.push_back("next_sentence_logits");
  head(own.pooler, model.hidden, pooling);
  add_masked_head(model, &list);
  head(own.next_sentence, 2, {"next_sentence_logits"});
  head(own.classes_dense, model.hidden, {"logits"});
  head(own.classes, own.num_classes, {"logits"});
  head(own.tokens, own.num_classes, {"token_logits"});
  head(own.spans, 2, {"span_logits"});
  return list.parts;
}

void define_encoder(const std::string& stem, LanguageFamily* def) {
  def->architecture = stem + "Model";
  for (const HeadClass& head : head_classes()) def->architectures.push_back(stem + head.name);
  def->architecture_of = [stem](const std::set<std::string>& outputs) {
    const auto fits = [&](const HeadClass& head) {
      return std::ranges::all_of(head.outputs,
                                 [&](const std::string& name) { return outputs.contains(name); });
    };
    return stem + std::ranges::find_if(head_classes(), fits)->name;
  };
  def->ports.outputs = {"hidden", "pooled",       "masked_hidden",
                        "logits", "token_logits", "span_logits"};
  def->ports.extras["masked_hidden"] = {{"masked_positions"}, {"head", "head_bias"}};
  def->parts = encoder_parts;
}

}  // namespace fleet
