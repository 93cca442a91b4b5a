// Jobs of token_classification and question_answering on a small BERT: two ranks train and evaluate
// as one, and learn; the answers of an evaluation are those of transformers' example.
#include "tests/engine/train/token_tasks.h"

#include <gmock/gmock.h>

#include "data/source.h"
#include "models/answer_metrics.h"
#include "models/predicted_answers.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

TEST_F(TokenTasks, TokenClassification_LearnsOnTwoRanksAsOnOne) {
  write("train.txt", tagged(53));
  write("test.txt", tagged(19));
  const Trained trained = train("token_classification", "token_labels", ".txt",
                                {"model.num_classes=4", "data.sequence_length=8",
                                 "train.metrics=['entity_f1', 'entity_recall', 'accuracy']"});
  EXPECT_GT(trained.test.at("entity_f1").get<double>(), 0.95);
  EXPECT_GT(trained.test.at("entity_recall").get<double>(), 0.95);
  EXPECT_GT(trained.test.at("accuracy").get<double>(), 0.95);
  EXPECT_LT(trained.losses.back(), trained.losses.front() / 5);
}

TEST_F(TokenTasks, BatchesByLength_LearnToo) {
  write("train.txt", tagged(53));
  write("test.txt", tagged(19));
  const Trained trained =
      train("token_classification", "token_labels", ".txt",
            {"model.num_classes=4", "data.sequence_length=8", "data.lengths=[5, 8]"});
  EXPECT_GT(trained.test.at("entity_f1").get<double>(), 0.95);
}

TEST_F(TokenTasks, QuestionAnswering_LearnsOnTwoRanksAsOnOne) {
  write("train.json", questions(61));
  write("test.json", questions(13));
  const Trained trained =
      train("question_answering", "squad", ".json", {"data.sequence_length=16", "data.stride=4"});
  EXPECT_GT(trained.test.at("exact_match").get<double>(), 0.9);
  EXPECT_GE(trained.test.at("f1").get<double>(), trained.test.at("exact_match").get<double>());
  EXPECT_LT(trained.losses.back(), trained.losses.front() / 5);
}

TEST_F(TokenTasks, WrongSettings_AreRefusedByTheirKey) {
  write("train.txt", tagged(9));
  write("test.txt", tagged(9));
  const auto refused = [&](const std::string& override) {
    return thrown_by([&] {
      HostDevice device;
      Trainer(text_job("token_classification", "token_labels", ".txt",
                       {"data.batch_size=4", "model.num_classes=4", override}),
              device, {});
    });
  };
  EXPECT_THAT(refused("model.num_classes=3"), IsUsageError("model.num_classes"));
  EXPECT_THAT(refused("train.metrics=['pearson']"), IsUsageError("train.metrics"));
  EXPECT_THAT(refused("data.sequence_length=2"), IsUsageError("data.sequence_length"));
  EXPECT_THAT(refused("data.sequence_length=40").code(), ErrorCode::kUsage);
}

// Rows of an open source with logits that the script drew too.
TEST_F(TokenTasks, Answers_AreThoseOfTransformersExample) {
  constexpr int64_t kLength = 20;
  write("train.json", golden_.at("squad").dump());
  const Settings data =
      ConfigTree::from_json(
          R"({"tokenizer": "tokenizer.json", "sequence_length": 20, "stride": 4})", "test")
          .validate(data::sources().get("squad").shared());
  const data::SourceContext context{.root = folder_, .data = &data};
  const Settings split = ConfigTree::from_json(R"({"file": "train.json"})", "test")
                             .validate(data::sources().get("squad").schema(true));
  const auto source = data::sources().get("squad").open(split, context);
  for (const bool none : {false, true}) {
    const AnswerLimits limits{
        .candidates = 5, .longest = 4, .may_have_none = none, .none_threshold = none ? -3.5 : 0};
    AnswerMetrics collector({}, limits);
    const auto decoder = answer_decoder(limits, kLength);
    std::map<int64_t, PredictionDecoder::Sample> samples;  // by question
    for (int64_t row = 0; row < source->size(); ++row) {
      std::vector<std::vector<int64_t>> columns;
      std::vector<void*> to;
      for (const Column& column : source->columns()) {
        columns.emplace_back(static_cast<size_t>(column.shape.elements()));
      }
      for (auto& column : columns) to.push_back(column.data());
      source->fill(row, 0, to);
      std::vector<float> logits(2 * kLength);
      const uint64_t key = golden::fnv1a("logits" + std::to_string(row));
      for (size_t i = 0; i < logits.size(); ++i) {
        const double u = static_cast<double>(golden::splitmix64(key + i) >> 40) / (1 << 24);
        logits[i % kLength * 2 + i / kLength] = static_cast<float>(4 * u - 2);
      }
      const float weight = 1;
      const auto& answer = golden_.at("answers")[static_cast<size_t>(columns[6][0])][none ? 1 : 0];
      const EvaluationCollector::Rows rows{
          .size = 1,
          .output = [&](const std::string&) { return std::span<const float>(logits); },
          .column =
              [&](const std::string& name) {
                const auto all = source->columns();
                const auto found = std::ranges::find(all, name, &Column::name);
                return found == all.end() ? std::as_bytes(std::span(&weight, 1))
                                          : std::as_bytes(std::span(columns[found - all.begin()]));
              },
          .texts = [&](int64_t, const std::string& what) -> std::vector<std::string> {
            if (what == "answers") return {answer.get<std::string>()};
            return source->texts(row, what);
          }};
      collector.add(rows);
      PredictionDecoder::Sample& sample = samples[columns[6][0]];
      std::vector<double> numbers(decoder->size());
      decoder->read(rows, 0, numbers);
      numbers.resize(decoder->used(numbers));
      sample.rows.insert(sample.rows.begin(), numbers);  // windows come in any order
      sample.top = 10;
      sample.texts = [&source, row](const std::string& what) { return source->texts(row, what); };
    }
    for (const auto& [question, sample] : samples) {
      const auto line = nlohmann::json::parse(decoder->line(sample).dump());
      const auto index = static_cast<size_t>(question);
      EXPECT_EQ(line.at("answer"), golden_.at("answers")[index][none ? 1 : 0]);
      const auto& candidates = golden_.at("candidates")[index][none ? 1 : 0];
      ASSERT_EQ(line.at("top").size(), candidates.size());
      for (size_t i = 0; i < candidates.size(); ++i) {
        const auto& own = line.at("top")[i];
        const bool null = candidates[i][0] == "";
        EXPECT_EQ(own.at("answer"), candidates[i][0]);
        EXPECT_EQ(own.at("start"), null ? nlohmann::json() : candidates[i][1]);
        EXPECT_EQ(own.at("end"), null ? nlohmann::json() : candidates[i][2]);
        EXPECT_NEAR(own.at("score").get<double>(), candidates[i][3].get<double>(), 1e-6);
        EXPECT_NEAR(own.at("probability").get<double>(), candidates[i][4].get<double>(), 1e-6);
      }
    }
    class Alone : public RankExchange {
     public:
      void sum(std::span<double>) override {}
      std::vector<std::vector<double>> gather(const std::vector<double>& own) override {
        return {own};
      }
    } alone;
    collector.finish(alone);
    EXPECT_EQ(collector.sums().questions, static_cast<double>(golden_.at("answers").size()));
    EXPECT_EQ(collector.sums().exact, collector.sums().questions);
  }
}

}  // namespace
}  // namespace fleet
