// Encoders from and to Hugging Face's folders: each head, old names, heads of other tasks.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "hf/export.h"
#include "models/task.h"
#include "models/text/language_family.h"
#include "tests/engine/hf/text_weights.h"
#include "tests/errors.h"
#include "train/language_weights.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FLEET_TASK(test_classes) {
  def.help = "a test";
  def.outputs = {"logits"};
}

std::set<std::string> outputs_of_head(const std::string& head) {
  if (head == "pretraining") return {"masked_hidden", "head", "head_bias", "next_sentence_logits"};
  if (head == "masked") return {"masked_hidden", "head", "head_bias"};
  if (head == "sequence") return {"logits"};
  return {head == "tokens" ? "token_logits" : "span_logits"};
}

// A case, and what transformers saves of it.
struct EncoderCase {
  explicit EncoderCase(const std::string& name)
      : text(golden::load_text("encoder_" + name)),
        model(read_language_model(text.config, "config.json")),
        outputs(outputs_of_head(text.head)),
        saved(weights_of(text)) {}

  TensorFile fitted(TensorFile file) const {
    fit_language_names(model, "w", &file, &outputs);
    return file;
  }

  golden::TextCase text;
  LanguageModel model;
  std::set<std::string> outputs;
  TensorFile saved;
};

class EncoderWeights : public ::testing::TestWithParam<const char*> {};

TEST_P(EncoderWeights, ReadAndWritten_AreTheSame) {
  const EncoderCase one(GetParam());
  TensorFile saved = one.saved;
  // transformers 4 saves both names of an untied bias, and transformers 5 computes with this one.
  const std::string bias = "cls.predictions.decoder.bias";
  if (saved.tensors.contains(bias)) saved.tensors["cls.predictions.bias"] = saved.tensors.at(bias);
  const TensorFile own = one.fitted(saved);
  expect_same(hugging_face_tensors(one.model, own, "w", one.outputs), saved);
  expect_same(one.fitted(own), own);  // a checkpoint of ours stays as it is
}

// What transformers would read again is the same model with the same head.
TEST_P(EncoderWeights, ConfigOfAnExport_NamesItsClass) {
  const EncoderCase one(GetParam());
  const Json config = hugging_face_config(one.model, one.text.config, "float32", one.outputs);
  EXPECT_EQ(config.at("architectures"), one.text.config.at("architectures"));
  std::vector<std::string> notes;
  const LanguageModel again = read_language_model(config, "config.json", &notes);
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(again.encoder->num_classes, one.model.encoder->num_classes);
}

INSTANTIATE_TEST_SUITE_P(Heads, EncoderWeights,
                         ::testing::Values("bert_pretraining", "bert_masked", "bert_sequence",
                                           "bert_tokens", "bert_spans", "roberta_masked",
                                           "roberta_sequence", "roberta_tokens", "roberta_spans",
                                           "distilbert_masked", "distilbert_sequence",
                                           "distilbert_tokens", "distilbert_spans"),
                         [](const auto& info) { return std::string(info.param); });

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Files of 2018 and 2019, and those of the class without heads.
TEST(OldEncoderWeights, AreReadAsTodays) {
  const EncoderCase one("bert_pretraining");
  TensorFile old;
  for (const auto& [name, tensor] : one.saved.tensors) {
    std::string own = name.starts_with("bert.") ? name.substr(5) : name;
    own = replaced(own, "LayerNorm.weight", "LayerNorm.gamma");
    old.tensors[replaced(own, "LayerNorm.bias", "LayerNorm.beta")] = tensor;
  }
  old.tensors["cls.predictions.decoder.weight"] =
      one.saved.tensors.at("bert.embeddings.word_embeddings.weight");
  old.tensors["cls.predictions.decoder.bias"] = one.saved.tensors.at("cls.predictions.bias");
  old.foreign["embeddings.position_ids"] = "I64";
  const TensorFile own = one.fitted(old);
  expect_same(own, one.fitted(one.saved));
  EXPECT_THAT(own.foreign, IsEmpty());
}

TEST(OldEncoderWeights, EitherTiedName_Suffices) {
  const EncoderCase one("roberta_masked");
  TensorFile file = one.saved;
  const auto move = [&](const std::string& from, const std::string& to) {
    file.tensors[to] = file.tensors.at(from);
    file.tensors.erase(from);
  };
  move("roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight");
  move("lm_head.bias", "lm_head.decoder.bias");
  expect_same(one.fitted(file), one.fitted(one.saved));
}

// The folder of a case, as the model of a job.
class EncoderJob : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/encoder_weights_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void save(const EncoderCase& one) const {
    write_file_atomically(folder_ + "/config.json", one.text.config.dump());
    write_safetensors(folder_ + "/model.safetensors", one.saved);
  }
  // classes: of the model's keys; 0: those of the folder.
  Job job(int64_t classes = 0) const {
    const std::string json = R"({"task": "test_classes", "model": {"name": "hf", "folder": ")" +
                             folder_ + R"(", "num_classes": )" + std::to_string(classes) +
                             R"(}, "data": {"source": "synthetic"}, "optimizer": {"name": "sgd"},
                                "learning_rate": {"name": "constant", "base": 0.1}})";
    return make_job(ConfigTree::from_json(json, "test"));
  }

  std::string folder_;
};

TEST_F(EncoderJob, PreTrainedModel_StartsTheHeadFreshAndNamesItsOwn) {
  save(EncoderCase("bert_pretraining"));
  HeadWeights heads;
  const TensorFile file = read_job_weights(job(), model_weights(job()), &heads);
  EXPECT_THAT(heads.missing, ElementsAre("classifier.bias", "classifier.weight"));
  ASSERT_EQ(heads.lines.size(), 1u);
  EXPECT_THAT(heads.lines[0], HasSubstr("cls.seq_relationship.weight"));
  EXPECT_THAT(heads.lines[0], HasSubstr("test_classes"));
  EXPECT_FALSE(file.tensors.contains("cls.predictions.bias"));
  EXPECT_TRUE(file.tensors.contains("bert.pooler.dense.weight"));
}

TEST_F(EncoderJob, FineTunedModel_IsReadWhole) {
  save(EncoderCase("distilbert_sequence"));
  HeadWeights heads;
  const TensorFile file = read_job_weights(job(), model_weights(job()), &heads);
  EXPECT_THAT(heads.missing, IsEmpty());
  EXPECT_THAT(heads.lines, IsEmpty());
  EXPECT_EQ(file.tensors.at("classifier.weight").shape, (Shape{3, 12}));
}

TEST_F(EncoderJob, Export_HasTheClassesOfTheJob) {
  save(EncoderCase("roberta_sequence"));
  const std::string out = folder_ + "/out";
  export_hugging_face(job(), out);
  const Json config = Json::parse(read_file(out + "/config.json"));
  EXPECT_EQ(config.at("architectures").at(0).get<std::string>(),
            "RobertaForSequenceClassification");
  EXPECT_EQ(config.at("id2label").size(), 3u);
  expect_same(read_safetensors(out + "/model.safetensors"),
              read_safetensors(folder_ + "/model.safetensors"));
  // Other classes than the folder's: the head does not fit, and no model is written.
  EXPECT_EQ(thrown_by([&] { export_hugging_face(job(5), folder_ + "/other"); }).code(),
            ErrorCode::kUsage);
}

TEST(EncoderConfig, NamesOfClasses_AreThoseOfTheData) {
  const EncoderCase one("bert_sequence");
  const Json config = hugging_face_config(one.model, one.text.config, "float32", one.outputs,
                                          {"bad", "good", "none"});
  EXPECT_EQ(config.at("id2label").at("1").get<std::string>(), "good");
  EXPECT_EQ(config.at("label2id").at("none").get<int64_t>(), 2);
}

}  // namespace
}  // namespace fleet
