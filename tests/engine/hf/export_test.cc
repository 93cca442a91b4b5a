#include "hf/export.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "models/text/language_family.h"
#include "tests/engine/hf/text_weights.h"
#include "tests/errors.h"
#include "train/language_weights.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kTextCases = {"gpt2",    "llama_rope", "llama_tied", "llama_yarn",
                                             "mistral", "qwen2",      "qwen3"};

TEST(LanguageWeights, ReadAndWritten_AreTheSame) {
  for (const std::string& name : kTextCases) {
    const golden::TextCase text = golden::load_text(name);
    const LanguageModel model = read_language_model(text.config, "config.json");
    TensorFile file = weights_of(text);
    fit_language_names(model, "w", &file);
    expect_same(hugging_face_tensors(model, file, "w"), weights_of(text));
  }
}

// Fitting what has our names changes nothing: a checkpoint of ours is read the same way.
TEST(LanguageWeights, OwnNames_StayAsTheyAre) {
  for (const std::string& name : kTextCases) {
    const golden::TextCase text = golden::load_text(name);
    const LanguageModel model = read_language_model(text.config, "config.json");
    TensorFile once = weights_of(text);
    fit_language_names(model, "w", &once);
    TensorFile twice = once;
    fit_language_names(model, "w", &twice);
    expect_same(twice, once);
  }
}

TEST(LanguageWeights, OldFile_IsRead) {
  const golden::TextCase text = golden::load_text("gpt2");
  const LanguageModel model = read_language_model(text.config, "config.json");
  TensorFile old, today = weights_of(text);
  for (const auto& [name, tensor] : today.tensors) {
    old.tensors[name.substr(std::string("transformer.").size())] = tensor;
  }
  old.tensors["h.0.attn.bias"] = host_tensor("mask", {1, 1, 16, 16});
  old.tensors["lm_head.weight"] = today.tensors.at("transformer.wte.weight");
  fit_language_names(model, "w", &old);
  fit_language_names(model, "w", &today);
  expect_same(old, today);
}

TEST(LanguageWeights, HeadAlone_IsTheTiedEmbedding) {
  const golden::TextCase text = golden::load_text("qwen3");
  const LanguageModel model = read_language_model(text.config, "config.json");
  TensorFile file = weights_of(text), other = weights_of(text);
  file.tensors["lm_head.weight"] = file.tensors.at("model.embed_tokens.weight");
  file.tensors.erase("model.embed_tokens.weight");
  fit_language_names(model, "w", &file);
  fit_language_names(model, "w", &other);
  expect_same(file, other);
}

TEST(LanguageWeights, MissingPart_IsNamed) {
  const golden::TextCase text = golden::load_text("llama_rope");
  const LanguageModel model = read_language_model(text.config, "config.json");
  TensorFile file = weights_of(text);
  file.tensors.erase("model.layers.1.self_attn.k_proj.weight");
  const Error error = thrown_by([&] { fit_language_names(model, "w", &file); });
  EXPECT_THAT(error, IsError(ErrorCode::kUsage, "w"));
  EXPECT_THAT(error.failure(), ::testing::HasSubstr("model.layers.1.self_attn.k_proj.weight"));
}

TEST(HuggingFaceConfig, Rope_HasTheKeysOfBothVersions) {
  const golden::TextCase text = golden::load_text("llama_rope");
  const LanguageModel model = read_language_model(text.config, "config.json");
  const Json config = hugging_face_config(model, text.config, "float32");
  EXPECT_EQ(config.at("rope_theta").get<double>(), 500);
  EXPECT_EQ(config.at("rope_parameters").at("rope_theta").get<double>(), 500);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    EXPECT_EQ(config.at(key).at("rope_type").get<std::string>(), "llama3");
    EXPECT_EQ(config.at(key).at("factor").get<double>(), 8);
    EXPECT_EQ(config.at(key).at("original_max_position_embeddings").get<int64_t>(), 64);
  }
  EXPECT_EQ(config.at("torch_dtype").get<std::string>(), "float32");
  EXPECT_EQ(config.at("dtype").get<std::string>(), "float32");
  std::vector<std::string> notes;
  const LanguageModel again = read_language_model(config, "config.json", &notes);
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(again.rope->all(), model.rope->all());
}

}  // namespace
}  // namespace fleet
