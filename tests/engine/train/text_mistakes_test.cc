// Mistakes of jobs that train on texts: model, task and source that do not go together.
#include <gmock/gmock.h>

#include "data/pipeline.h"
#include "tensor/host.h"
#include "tests/errors.h"
#include "text/token_file.h"
#include "train/job.h"
#include "train/job_check.h"
#include "train/job_data.h"
#include "train/job_task.h"
#include "train/predict.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLlama[] = R"("model": {"name": "llama", "vocab_size": 32, "hidden_size": 8,
    "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "max_position_embeddings": 64})";

Job job_of(const std::string& json) { return make_job(ConfigTree::from_json(json, "job.json")); }

TEST(TextMistakes, ModelOfAnotherTask_IsRefusedBeforeDataAreOpened) {
  const Job text = job_of(std::string("{") + kLlama + R"(, "data": {"source": "tokens",
      "train": {"file": "none.bin"}}})");
  const Error error = thrown_by([&] { check_training(text, {}); });
  EXPECT_THAT(error, IsUsageError("model 'llama'"));
  EXPECT_THAT(error.next(), HasSubstr("set task to causal_lm"));
  HostDevice device;
  EXPECT_THAT(thrown_by([&] {
                open_data(text, device, {0, 1}, nullptr);
              }),
              IsUsageError("model 'llama'"));
}

TEST(TextMistakes, SourceWithoutAColumn_NamesTheSourcesThatHaveIt) {
  const auto next = [](const std::string& json) {
    const Error error = thrown_by([&] { check_task(job_of(json)); });
    EXPECT_THAT(error, IsUsageError("data.source"));
    return error.next();
  };
  EXPECT_THAT(next(std::string(R"({"task": "causal_lm", )") + kLlama +
                   R"(, "data": {"source": "synthetic"}})"),
              HasSubstr("or tokens"));
  EXPECT_THAT(next(std::string(R"({"task": "causal_lm", )") + kLlama +
                   R"(, "data": {"source": "token_labels"}})"),
              Not(HasSubstr("token_labels")));
  EXPECT_EQ(next(R"({"task": "multi_label", "model": {"name": "lenet", "num_classes": 3},
                     "data": {"source": "image_list"}})"),
            "set it to image_labels");
  EXPECT_THAT(next(R"({"model": {"name": "lenet"},
                       "data": {"source": "image_table", "label_column": ["x", "y"]}})"),
              AllOf(HasSubstr("correct data.label_column"), Not(HasSubstr("image_table"))));
  EXPECT_THAT(next(R"({"model": {"name": "lenet"}, "data": {"source": "tokens"}})"),
              HasSubstr("image_folder"));
}

TEST(TextMistakes, Prediction_LeadsToGenerate) {
  const Job job = job_of(std::string(R"({"task": "causal_lm", )") + kLlama +
                         R"(, "predict": {"input": ["none.png"]},
                         "data": {"source": "tokens", "train": {"file": "none.bin"}}})");
  HostDevice device;
  const Error error = thrown_by([&] { predict(job, device, {}); });
  EXPECT_THAT(error, IsUsageError("predict.input"));
  EXPECT_THAT(error.next(), HasSubstr("fleetrun generate"));
}

TEST(TextMistakes, PredictionOfAnEncoder_LeadsToEmbeddings) {
  const Job job = job_of(R"({"task": "masked_lm", "model": {"name": "bert"},
      "predict": {"input": ["none.txt"]},
      "data": {"source": "masked_text", "tokenizer": "none", "train": {"file": "none.txt"}}})");
  HostDevice device;
  const Error error = thrown_by([&] { predict(job, device, {}); });
  EXPECT_THAT(error, IsUsageError("predict.input"));
  EXPECT_THAT(error.next(), AllOf(HasSubstr("predict.embedding"), Not(HasSubstr("generate"))));
}

TEST(TextMistakes, EvaluationOnly_OpensNoTrainingTexts) {
  const std::string folder = ::testing::TempDir();
  text::TokenWriter writer(folder + "/text_mistakes.bin", text::TokenFormat::kNanoGpt,
                           text::TokenWidth::kUint16);
  writer.add(std::vector<uint32_t>(100, 3));
  writer.finish();
  const std::string json = std::string(R"({"task": "causal_lm", )") + kLlama +
                           R"(, "data": {"source": "tokens", "root": ")" + folder +
                           R"(", "sequence_length": 8, "train": {"file": "none.bin"},
                           "test": {"file": "text_mistakes.bin"}}, "train": {"evaluate_only": )";
  HostDevice device;
  EXPECT_GT(open_data(job_of(json + "true}}"), device, {0, 1}, nullptr)->test()->samples(), 0);
  EXPECT_THAT(thrown_by([&] {
                open_data(job_of(json + "false}}"), device, {0, 1}, nullptr);
              }),
              IsUsageError("data.train.file"));
}

}  // namespace
}  // namespace fleet
