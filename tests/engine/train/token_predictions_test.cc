// Predictions of token_classification and question_answering: as the evaluation decodes them, in
// the order of the input, on any number of ranks.
#include <gmock/gmock.h>

#include "base/file.h"
#include "models/metrics_answers.h"
#include "tests/captured_log.h"
#include "tests/engine/train/token_tasks.h"
#include "train/predict.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
class TokenPredictions : public TokenTasks {
 protected:
  Job predicting(const std::string& task, const std::string& source, const std::string& file,
                 const std::string& input, const std::vector<std::string>& overrides) const {
    return text_job(task, source, file,
                    with({"predict.input=" + folder_ + "/" + input,
                          "predict.output=" + folder_ + "/lines.jsonl"},
                         overrides));
  }
  // Predicts on one rank and on two: the same lines.
  std::vector<nlohmann::json> predicted(const Job& job) const {
    std::string first;
    for (const int world : {1, 2}) {
      run_ranks_well(world, [&](RankThread& rank) {
        HostDevice device;
        predict(
            job, device,
            {.rank = rank.rank, .world = world, .control = rank.communicator, .store = rank.store});
      });
      const std::string text = read_file(folder_ + "/lines.jsonl");
      if (world == 1) first = text;
      EXPECT_EQ(text, first);
    }
    std::vector<nlohmann::json> lines;
    std::istringstream text(first);
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
};

TEST_F(TokenPredictions, Words_AreThoseThatTheEvaluationCounts) {
  const std::vector<std::string> settings = {"model.num_classes=4", "data.sequence_length=8",
                                             "train.metrics=['accuracy']", "data.batch_size=8"};
  write("train.txt", tagged(53));
  write("test.txt", tagged(19));
  run(text_job("token_classification", "token_labels", ".txt",
               with(settings, {"train.epochs=2", "train.evaluate_every=2"})),
      1);
  std::string words;  // a word a line
  std::vector<std::vector<std::pair<std::string, std::string>>> expected(1);
  std::istringstream file(tagged(19));
  for (std::string line; std::getline(file, line);) {
    const std::string word = line.substr(0, line.find(' '));
    words += word + "\n";
    if (line.empty()) {
      expected.emplace_back();
    } else {
      expected.back().emplace_back(word, line.substr(line.find(' ') + 1));
    }
  }
  expected.pop_back();
  write("words.txt", words);
  const std::vector<nlohmann::json> lines =
      predicted(predicting("token_classification", "token_labels", ".txt", "words.txt",
                           with(settings, {"data.batch_size=3"})));
  ASSERT_EQ(lines.size(), expected.size());
  double right = 0, all = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const nlohmann::json& own = lines[i].at("words");
    ASSERT_EQ(own.size(), expected[i].size());
    for (size_t w = 0; w < own.size(); ++w) {
      EXPECT_EQ(own[w].at("text"), expected[i][w].first);
      EXPECT_GT(own[w].at("probability").get<double>(), 0.25);  // the largest of four
      right += own[w].at("label") == expected[i][w].second ? 1 : 0;
      ++all;
    }
  }
  EXPECT_EQ(all, events("test").back().at("tokens").get<double>());
  EXPECT_NEAR(right / all, events("test").back().at("accuracy").get<double>(), 1e-5);
}

TEST_F(TokenPredictions, WordsWithoutARow_AreNamedAndCounted) {
  const std::vector<std::string> settings = {"model.num_classes=4", "data.sequence_length=6",
                                             "data.truncation=cut", "data.batch_size=8"};
  write("train.txt", tagged(53));
  write("test.txt", tagged(9));
  run(text_job("token_classification", "token_labels", ".txt", with(settings, {"train.epochs=1"})),
      1);
  write("new.jsonl",
        "{\"tokens\": \"the cats on a mat in paris\"}\n{\"tokens\": [\"\\u200b\"]}\n"
        "{\"tokens\": [\"mat\", \"\\u200b\", \"on\"]}\n");
  const LogCapture log;
  const std::vector<nlohmann::json> lines =
      predicted(predicting("token_classification", "token_labels", ".txt", "new.jsonl", settings));
  EXPECT_THAT(log.captured_log(), HasSubstr("predict.input: 1 of 3 texts longer"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1].at("file"), HasSubstr("new.jsonl:2"));
  EXPECT_THAT(lines[1].at("error"), HasSubstr("no token"));
  const nlohmann::json& cut = lines[0].at("words");
  ASSERT_EQ(cut.size(), 7u);
  int64_t without = 0;
  for (const nlohmann::json& word : cut) {
    EXPECT_NE(word.contains("label"), word.contains("error"));
    without += word.contains("error") ? 1 : 0;
  }
  EXPECT_EQ(cut[6].at("text"), "paris");
  EXPECT_THAT(cut[6].at("error"), HasSubstr("data.truncation"));
  EXPECT_GT(without, 0);
  EXPECT_EQ(lines[0].at("left_out"), without);
  EXPECT_THAT(lines[2].at("words")[1].at("error"), HasSubstr("no token"));
  EXPECT_TRUE(lines[2].at("words")[2].contains("label"));
  // The same text in several rows.
  const std::vector<nlohmann::json> whole =
      predicted(predicting("token_classification", "token_labels", ".txt", "new.jsonl",
                           with(settings, {"data.truncation=windows"})));
  EXPECT_FALSE(whole[0].contains("left_out"));
  EXPECT_TRUE(whole[0].at("words")[6].contains("label"));
}

TEST_F(TokenPredictions, Answers_AreThoseThatTheEvaluationScores) {
  const std::vector<std::string> settings = {"data.sequence_length=12", "data.stride=2",
                                             "data.batch_size=8"};
  write("train.json", questions(61));
  write("test.json", questions(13));
  run(text_job("question_answering", "squad", ".json",
               with(settings, {"train.epochs=4", "train.evaluate_every=4"})),
      1);
  const nlohmann::json test = nlohmann::json::parse(questions(13));
  nlohmann::json unanswered = test;
  std::string flat;
  std::vector<std::pair<std::string, std::string>> expected;  // context, answer
  for (auto& paragraph : unanswered["data"][0]["paragraphs"]) {
    auto& question = paragraph["qas"][0];
    expected.emplace_back(paragraph["context"], question["answers"][0]["text"]);
    question.erase("answers");
    flat += nlohmann::json{{"id", question["id"]},
                           {"question", question["question"]},
                           {"context", paragraph["context"]}}
                .dump() +
            "\n";
  }
  write("new.json", unanswered.dump());
  write("new.jsonl", flat);
  const auto lines_of = [&](const std::string& input, const std::vector<std::string>& more = {}) {
    return predicted(
        predicting("question_answering", "squad", ".json", input, with(settings, more)));
  };
  const std::vector<nlohmann::json> lines =
      lines_of("new.json", {"predict.top_k=2", "data.batch_size=5"});
  ASSERT_EQ(lines.size(), expected.size());
  double exact = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const nlohmann::json& line = lines[i];
    EXPECT_EQ(line.at("id"), std::to_string(i));
    const std::string answer = line.at("answer");
    const size_t start = line.at("start"), end = line.at("end");  // the context is ASCII
    EXPECT_EQ(expected[i].first.substr(start, end - start), answer);
    EXPECT_EQ(line.at("top").size(), 2u);
    EXPECT_EQ(line.at("top")[0].at("score"), line.at("score"));
    exact += is_exact_answer(expected[i].second, answer) ? 1 : 0;
  }
  EXPECT_NEAR(exact / std::ssize(lines), events("test").back().at("exact_match").get<double>(),
              1e-5);
  EXPECT_EQ(lines_of("new.jsonl", {"predict.top_k=2", "data.batch_size=5"}), lines);
  // With a threshold that every null answer exceeds.
  for (const nlohmann::json& line :
       lines_of("new.json", {"train.null_answers=true", "train.null_threshold=-1000"})) {
    EXPECT_EQ(line.at("answer"), "");
    EXPECT_TRUE(line.at("start").is_null());
  }
}

TEST_F(TokenPredictions, WrongInput_IsRefused) {
  write("train.txt", tagged(9));
  write("new.jsonl", "{\"words\": []}\n");
  write("new.json", "{}");
  const auto refused = [&](const Job& job) {
    HostDevice device;
    return thrown_by([&] { predict(job, device, {}); });
  };
  const auto words = [&](const std::string& input, const std::vector<std::string>& more) {
    return refused(predicting("token_classification", "token_labels", ".txt", input,
                              with({"model.num_classes=4"}, more)));
  };
  EXPECT_THAT(words("new.jsonl", {}).where(), HasSubstr("new.jsonl:1"));
  EXPECT_THAT(words("new.jsonl", {"predict.format=csv"}), IsUsageError("predict.format"));
  EXPECT_THAT(words("new.jsonl", {"predict.top_k=2"}), IsUsageError("predict.top_k"));
  EXPECT_THAT(words("none.jsonl", {}), IsUsageError("predict.input"));
  const Error error = refused(predicting("question_answering", "squad", ".json", "new.json", {}));
  EXPECT_THAT(error, IsUsageError());
  EXPECT_THAT(error.where(), HasSubstr("new.json"));
  // The form of lines, and no number of the parser's error.
  write("line.jsonl", "{\"question\": \"a\"}\n");
  const Error line = refused(predicting("question_answering", "squad", ".json", "line.jsonl", {}));
  EXPECT_THAT(line.where(), HasSubstr("line.jsonl:1"));
  EXPECT_THAT(line.next(), HasSubstr("\"question\""));
  write("new.json", "id\tquestion\n");
  const Error table = refused(predicting("question_answering", "squad", ".json", "new.json", {}));
  EXPECT_THAT(std::string(table.what()),
              AllOf(HasSubstr("line 1"), Not(HasSubstr("json.exception"))));
}

}  // namespace
}  // namespace fleet
