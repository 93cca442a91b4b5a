#include "models/text/language_family.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "models/model.h"
#include "models/text/language_models.h"
#include "tests/engine/models/text/golden_text.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json config_of(const std::string& json) { return Json::parse(json); }

LanguageModel read(const std::string& json, std::vector<std::string>* notes = nullptr) {
  return read_language_model(config_of(json), "config.json", notes);
}

// What transformers of a version writes for all families, and what its classes have besides.
Json saved_configs(const std::string& version) {
  return Json::parse(read_file(golden::text_folder() + "configs_" + version + ".json"));
}

TEST(LanguageFamily, EveryFieldOfTransformers_IsKnown) {
  for (const char* version : {"4.57", "5.24"}) {
    const Json configs = saved_configs(version);
    EXPECT_EQ(configs.size(), language_family_registry().names().size());
    for (const auto& [family, config] : configs.items()) {
      std::vector<std::string> notes;
      const LanguageModel model = read_language_model(config, version, &notes);
      EXPECT_EQ(model.family, family);
      EXPECT_THAT(notes, IsEmpty()) << family << " of transformers " << version;
    }
  }
}

TEST(LanguageFamily, NoField_IsListedTwice) {
  for (const std::string& name : language_family_registry().names()) {
    std::vector<std::string> names;
    for (const ConfigField& field : common_config_fields()) names.push_back(field.name);
    for (const ConfigField& field : language_family_registry().get(name).fields) {
      names.push_back(field.name);
    }
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << name;
  }
}

TEST(LanguageFamily, RefusedField_IsNamed) {
  for (const char* field :
       {R"("is_encoder_decoder": true)", R"("quantization_config": {"bits": 4})",
        R"("hidden_act": "relu2")", R"("rope_interleaved": true)", R"("vocab_size": 0)",
        R"("num_key_value_heads": 3)", R"("partial_rotary_factor": 0.5)",
        R"("architectures": ["LlamaForSequenceClassification"])", R"("hidden_size": "big")",
        R"("attention_dropout": 1)"}) {
    const std::string json = R"({"model_type": "llama", )" + std::string(field) + "}";
    const Error error = thrown_by([&] { read(json); });
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_THAT(error.failure(), HasSubstr("'" + name + "'"));
  }
}

TEST(EncoderFamily, RefusedField_IsNamed) {
  for (const char* field : {R"("is_decoder": true)", R"("position_embedding_type": "relative_key")",
                            R"("hidden_act": "mish")", R"("architectures": ["BertLMHeadModel"])",
                            R"("num_attention_heads": 7)", R"("id2label": [])",
                            R"("id2label": {"1": "a"})", R"("hidden_dropout_prob": 1)"}) {
    const Error error =
        thrown_by([&] { read(R"({"model_type": "bert", )" + std::string(field) + "}"); });
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_THAT(error.failure(), HasSubstr("'" + name + "'"));
  }
}

TEST(EncoderFamily, Classes_AreThoseOfTheNames) {
  EXPECT_EQ(read(R"({"model_type": "bert"})").encoder->num_classes, 2);
  const LanguageModel named =
      read(R"({"model_type": "roberta", "id2label": {"0": "c", "1": "b", "2": "a"}})");
  EXPECT_EQ(named.encoder->num_classes, 3);
  EXPECT_THAT(named.encoder->class_names, ElementsAre("c", "b", "a"));
}

TEST(Roberta, Positions_StartBehindThePaddingToken) {
  const LanguageModel model =
      read(R"({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1})");
  EXPECT_EQ(model.positions, 512);
  EXPECT_EQ(model.encoder->first_position, 2);
  EXPECT_EQ(thrown_by([] { read(R"({"model_type": "roberta", "pad_token_id": null})"); }).code(),
            ErrorCode::kUsage);
}

TEST(LanguageFamily, RopeTypeOfOthers_IsRefused) {
  for (const char* rope : {R"({"rope_type": "longrope", "factor": 2})", R"({"type": "linear"})",
                           R"({"rope_type": "yarn", "factor": 2, "mrope_section": [1]})"}) {
    EXPECT_THAT(thrown_by([&] {
                  read(R"({"model_type": "llama", "rope_scaling": )" + std::string(rope) + "}");
                }),
                IsError(ErrorCode::kUsage, "config.json: rope_scaling"));
  }
}

TEST(LanguageFamily, OtherFamily_IsRefusedWithThoseKnown) {
  const Error error = thrown_by([] { read(R"({"model_type": "gemma2"})"); });
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.next(), HasSubstr("gpt2, llama, mistral, qwen2, qwen3"));
}

TEST(LanguageFamily, UnknownField_HasNoEffectButALine) {
  std::vector<std::string> notes;
  read(R"({"model_type": "llama", "unsloth_version": "1"})", &notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("unsloth_version"));
}

// transformers 4 and 5 write the same rope under different names.
TEST(LanguageFamily, OldAndNewRope_AreTheSame) {
  const LanguageModel old = read(R"({"model_type": "llama", "rope_theta": 5e5, "rope_scaling":
      {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
       "original_max_position_embeddings": 8192}})");
  const LanguageModel today = read(R"({"model_type": "llama", "rope_parameters":
      {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
       "high_freq_factor": 4, "original_max_position_embeddings": 8192}})");
  EXPECT_EQ(old.rope->all(), today.rope->all());
  EXPECT_EQ(old.rope->number("theta"), 5e5);
  EXPECT_EQ(old.rope->integer("original_max_position_embeddings"), 8192);
}

TEST(Mistral, MissingWindow_IsTransformersDefault) {
  EXPECT_THAT(read(R"({"model_type": "mistral"})").windows, Each(4096));
  EXPECT_THAT(read(R"({"model_type": "mistral", "sliding_window": null})").windows, Each(0));
}

TEST(Qwen2, Windows_StartAtMaxWindowLayers) {
  const std::string start = R"({"model_type": "qwen2", "num_hidden_layers": 3,
                                "sliding_window": 7, "max_window_layers": 1)";
  EXPECT_THAT(read(start + "}").windows, ElementsAre(0, 0, 0));
  EXPECT_THAT(read(start + R"(, "use_sliding_window": true})").windows, ElementsAre(0, 7, 7));
  EXPECT_THAT(read(start + R"(, "use_sliding_window": true, "layer_types":
      ["sliding_attention", "full_attention", "full_attention"]})")
                  .windows,
              ElementsAre(7, 0, 0));
}

TEST(Qwen3, HeadSize_IsIndependentOfHidden) {
  EXPECT_EQ(read(R"({"model_type": "qwen3", "hidden_size": 1024})").head_size, 128);
}

TEST(Llama, HeadsThatDoNotDivideHidden_AreNamedFirst) {
  const Error error = thrown_by([] {
    read(R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 5,
             "num_key_value_heads": 2})");
  });
  EXPECT_THAT(error.what(), HasSubstr("hidden_size"));
  EXPECT_THAT(error.next(), HasSubstr("a multiple of num_attention_heads, 5"));
}

TEST(Llama, KvHeads_NullIsAsManyAsHeads) {
  EXPECT_EQ(read(R"({"model_type": "mistral", "num_key_value_heads": null})").kv_heads, 32);
  EXPECT_EQ(read(R"({"model_type": "mistral"})").kv_heads, 8);
}

// The keys of a model in a job file, with their defaults, are a config.json with transformers'.
TEST(LanguageModels, DefaultsOfKeys_AreThoseOfTransformers) {
  const Json configs = saved_configs("5.24");
  for (const std::string& name : language_family_registry().names()) {
    const Settings settings =
        ConfigTree::from_json("{}", "test").validate(model_registry().get(name).schema);
    const LanguageModel ours = language_model_of(*language_source(name, settings));
    const LanguageModel theirs = read_language_model(configs.at(name), "config.json");
    EXPECT_EQ(ours.vocabulary, theirs.vocabulary) << name;
    EXPECT_EQ(ours.hidden, theirs.hidden) << name;
    EXPECT_EQ(ours.layers, theirs.layers) << name;
    EXPECT_EQ(ours.heads, theirs.heads) << name;
    EXPECT_EQ(ours.kv_heads, theirs.kv_heads) << name;
    EXPECT_EQ(ours.head_size, theirs.head_size) << name;
    EXPECT_EQ(ours.mlp, theirs.mlp) << name;
    EXPECT_EQ(ours.positions, theirs.positions) << name;
    EXPECT_EQ(ours.epsilon, theirs.epsilon) << name;
    EXPECT_EQ(ours.windows, theirs.windows) << name;
    EXPECT_EQ(ours.tied, theirs.tied) << name;
    EXPECT_EQ(ours.padding_id, theirs.padding_id) << name;
    EXPECT_EQ(ours.residual_dropout, theirs.residual_dropout) << name;
    EXPECT_EQ(ours.residual_deviation, theirs.residual_deviation) << name;
  }
}

TEST(LanguageModels, SequenceBeyondPositions_IsRefused) {
  const LanguageModel model =
      read(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16})");
  Program program;
  NamedVars feeds;
  for (const char* name : {"input_ids", "position_ids"}) {
    feeds[name] = program.feed(name, DType::kInt64, {1, 17});
  }
  Network network(program, program.add_section("forward", {.training = true}), true, kNoVar);
  EXPECT_THAT(thrown_by([&] { build_language_model(network, feeds, model); }),
              IsError(ErrorCode::kUsage, "gpt2"));
}

// GPT-2 with 124 million parameters: the number that its paper and transformers have.
TEST(LanguageModels, Gpt2_Has124439808Parameters) {
  Program program;
  NamedVars feeds;
  for (const char* name : {"input_ids", "position_ids", "document_ids"}) {
    feeds[name] = program.feed(name, DType::kInt64, {1, 8});
  }
  feeds["sample_key"] = program.feed("sample_key", DType::kInt64, {1});
  Network network(program, program.add_section("forward", {.training = true}), true,
                  feeds["sample_key"]);
  build_language_model(network, feeds, read(R"({"model_type": "gpt2"})"));
  int64_t count = 0;
  for (const VarId id : program.parameters()) count += program.var(id).shape.elements();
  EXPECT_EQ(count, 124439808);
  EXPECT_EQ(network.blocks().size(), 13u);
}

// The number of transformers' BertForPreTraining of bert-base-uncased.
TEST(LanguageModels, BertBase_Has110106428Parameters) {
  Program program;
  NamedVars feeds = {{"sample_key", program.feed("sample_key", DType::kInt64, {1})}};
  for (const char* name : {"input_ids", "position_ids", "document_ids", "token_type_ids"}) {
    feeds[name] = program.feed(name, DType::kInt64, {1, 8});
  }
  feeds["masked_positions"] = program.feed("masked_positions", DType::kInt64, {1, 2});
  Network network(program, program.add_section("forward", {.training = true}), true,
                  feeds["sample_key"]);
  network.set_wanted_outputs({"masked_hidden", "next_sentence_logits"});
  build_language_model(network, feeds, read(R"({"model_type": "bert"})"));
  int64_t count = 0;
  for (const VarId id : program.parameters()) count += program.var(id).shape.elements();
  EXPECT_EQ(count, 110106428);
  EXPECT_EQ(network.blocks().size(), 13u);
}

}  // namespace
}  // namespace fleet
