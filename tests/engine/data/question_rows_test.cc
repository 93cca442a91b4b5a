// Rows of the sources squad and token_labels against those of transformers' examples
// (scripts/make_golden_question_rows.py), and what is wrong in such data.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "data/pipeline.h"
#include "tests/captured_log.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

nlohmann::json golden() {
  return nlohmann::json::parse(
      std::ifstream(source_folder() + "/tests/golden/text/question_rows.json"));
}

// A sample's columns by name; one number for each.
std::map<std::string, std::vector<int64_t>> sample_of(const Source& source, int64_t index) {
  std::map<std::string, std::vector<int64_t>> sample;
  std::vector<std::vector<float>> floats;
  std::vector<void*> to;
  floats.reserve(source.columns().size());
  for (const Column& column : source.columns()) {
    const auto size = static_cast<size_t>(column.shape.elements());
    if (column.dtype == DType::kFloat32) {
      to.push_back(floats.emplace_back(size).data());
    } else {
      to.push_back(sample.emplace(column.name, size).first->second.data());
    }
  }
  source.fill(index, 0, to);
  return sample;
}

class QuestionRows : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write(folder_ / "tokenizer.json", golden_.at("tokenizer").dump());
  }

  std::unique_ptr<Source> open(const std::string& name, const std::string& file,
                               const std::string& more = "", bool train = true,
                               const std::string& train_file = "") const {
    const std::string json = R"({"root": ")" + folder_.path() +
                             R"(", "tokenizer": "tokenizer.json", "train": {"file": ")" +
                             (train ? file : train_file) + R"("}, "test": {"file": ")" + file +
                             "\"}" + more + "}";
    settings_ = testing::settings_of(name, json);
    train_ = settings_.section("train");
    SourceContext context{.root = folder_.path(), .train = train, .data = &settings_};
    context.train_split = train ? nullptr : &train_;
    return sources().get(name).open(settings_.section(train ? "train" : "test"), context);
  }

  testing::TempFolder folder_;
  const nlohmann::json golden_ = golden();
  mutable Settings settings_, train_;
};

std::vector<int64_t> padded(const nlohmann::json& values, size_t size, int64_t padding) {
  auto all = values.get<std::vector<int64_t>>();
  all.resize(size, padding);
  return all;
}

TEST_F(QuestionRows, Windows_AreThoseOfTransformers) {
  testing::write(folder_ / "train.json", golden_.at("squad").dump());
  const auto source = open("squad", "train.json", R"(, "sequence_length": 20, "stride": 4)");
  const auto& rows = golden_.at("rows");
  ASSERT_EQ(source->size(), static_cast<int64_t>(rows.size()));
  for (int64_t i = 0; i < source->size(); ++i) {
    SCOPED_TRACE(source->name(i));
    const auto sample = sample_of(*source, i);
    const auto& row = rows[static_cast<size_t>(i)];
    EXPECT_EQ(sample.at("input_ids"), padded(row.at("ids"), 20, 0));
    EXPECT_EQ(sample.at("token_type_ids"), padded(row.at("types"), 20, 0));
    EXPECT_THAT(sample.at("start_position"), ElementsAre(row.at("start").get<int64_t>()));
    EXPECT_THAT(sample.at("end_position"), ElementsAre(row.at("end").get<int64_t>()));
    EXPECT_THAT(sample.at("part"), ElementsAre(row.at("part").get<int64_t>()));
    std::vector<int64_t> begins, ends;
    for (const auto& span : row.at("spans")) {
      begins.push_back(span[0]);
      ends.push_back(span[1]);
    }
    EXPECT_EQ(sample.at("token_begin"), padded(begins, 20, -1));
    EXPECT_EQ(sample.at("token_end"), padded(ends, 20, -1));
  }
  EXPECT_THAT(source->texts(0, "answers"), ElementsAre("The cats"));
  EXPECT_THAT(source->texts(0, "context")[0], HasSubstr("naïve cat"));
}

// The questions of a text stay together.
TEST_F(QuestionRows, ValidationPart_DividesTexts) {
  testing::write(folder_ / "train.json", golden_.at("squad").dump());
  const Settings data = testing::settings_of(
      "squad", R"({"root": ")" + folder_.path() +
                   R"(", "tokenizer": "tokenizer.json", "train": {"file": "train.json"},
                      "sequence_length": 20, "stride": 4, "validation_split": 0.34})");
  std::set<std::string> train, validation;
  for (const bool trains : {true, false}) {
    const auto pipeline = make_pipeline(data, trains, {});
    const Source& source = pipeline->source();
    for (int64_t i = 0; i < source.size(); ++i) {
      (trains ? train : validation).insert(source.texts(i, "context")[0]);
    }
  }
  EXPECT_EQ(train.size(), 2u);
  EXPECT_EQ(validation.size(), 1u);
  EXPECT_FALSE(train.contains(*validation.begin()));
}

TEST_F(QuestionRows, WrongQuestions_AreRefusedByTheirId) {
  const auto refusal = [&](const std::string& more) {
    return thrown_by([&] { open("squad", "train.json", more); });
  };
  nlohmann::json wrong = golden_.at("squad");
  wrong["data"][0]["paragraphs"][0]["qas"][1]["answers"][0]["answer_start"] = 7;
  testing::write(folder_ / "train.json", wrong.dump());
  const Error misplaced = refusal("");
  EXPECT_THAT(misplaced, IsUsageError());
  EXPECT_THAT(misplaced.where(), HasSubstr("train.json, question q1"));
  testing::write(folder_ / "train.json", golden_.at("squad").dump());
  EXPECT_THAT(refusal(R"(, "sequence_length": 12, "stride": 4)"), IsUsageError());
  testing::write(folder_ / "train.json", R"({"data": [{"paragraphs": [{"context": 1}]}]})");
  EXPECT_THAT(refusal(""), IsUsageError());
  testing::write(folder_ / "train.json", "no json");
  EXPECT_THAT(refusal(""), IsUsageError());
}

TEST_F(QuestionRows, LongQuestion_IsCutAndCounted) {
  testing::write(folder_ / "train.json", golden_.at("squad").dump());
  const LogCapture log;
  const auto source =
      open("squad", "train.json", R"(, "sequence_length": 20, "stride": 4, "question_length": 2)");
  EXPECT_THAT(log.captured_log(), HasSubstr("data.question_length"));
  const auto ids = sample_of(*source, 0).at("input_ids");
  EXPECT_EQ(ids[3], 3);  // [SEP] behind two tokens
}

class TokenLabels : public QuestionRows {
 protected:
  void write_tagged() const {
    std::string lines;
    for (const auto& text : golden_.at("tagged")) lines += text.dump() + "\n";
    testing::write(folder_ / "train.jsonl", lines);
  }
};

TEST_F(TokenLabels, JsonLines_LabelFirstPiecesAsTransformers) {
  write_tagged();
  const auto source = open("token_labels", "train.jsonl", R"(, "sequence_length": 32)");
  const auto& rows = golden_.at("tagged_rows");
  ASSERT_EQ(source->size(), static_cast<int64_t>(rows.size()));
  for (int64_t i = 0; i < source->size(); ++i) {
    const auto sample = sample_of(*source, i);
    EXPECT_EQ(sample.at("input_ids"), padded(rows[i].at("ids"), 32, 0));
    EXPECT_EQ(sample.at("token_labels"), padded(rows[i].at("labels"), 32, -100));
    EXPECT_THAT(sample.at("text"), ElementsAre(i));
  }
  EXPECT_EQ(source->weight(1, 0), 4);
  EXPECT_TRUE(source->class_names().empty());  // the labels are numbers
}

constexpr char kColumns[] =
    "-DOCSTART- -X- O O\n\nthe DT O O\ncats NN I-NP B-X\nsat VB O O\n\n"
    "Paris\tI-LOC\r\n \nwho WP B-NP O\n";

TEST_F(TokenLabels, Columns_EndTextsAtEmptyLines) {
  testing::write(folder_ / "train.txt", kColumns);
  const auto source = open("token_labels", "train.txt", R"(, "sequence_length": 8)");
  EXPECT_THAT(source->class_names(), ElementsAre("B-X", "I-LOC", "O"));
  ASSERT_EQ(source->size(), 3);
  EXPECT_THAT(sample_of(*source, 0).at("token_labels"),
              ElementsAre(-100, 2, 0, -100, 2, -100, -100, -100));
  EXPECT_THAT(source->name(1), HasSubstr("train.txt:7"));
}

TEST_F(TokenLabels, LongText_BecomesWindowsIsCutOrRefused) {
  write_tagged();
  const auto opened = [&](const std::string& rule) {
    return open("token_labels", "train.jsonl",
                R"(, "sequence_length": 8, "truncation": ")" + rule + "\"");
  };
  const auto windows = opened("windows");
  int64_t labels = 0, parts = 0;
  for (int64_t i = 0; i < windows->size(); ++i) {
    labels += static_cast<int64_t>(windows->weight(i, 0));
    const auto sample = sample_of(*windows, i);
    if (sample.at("text")[0] == 0) EXPECT_EQ(sample.at("part")[0], parts++);
    EXPECT_EQ(sample.at("input_ids")[0], 2);
  }
  EXPECT_EQ(labels, 22);  // each word once
  EXPECT_GT(parts, 3);
  const LogCapture log;
  EXPECT_EQ(opened("cut")->size(), 2);
  EXPECT_THAT(log.captured_log(), HasSubstr("data.sequence_length"));
  EXPECT_THAT(thrown_by([&] { opened("error"); }).where(), HasSubstr("train.jsonl:1"));
}

TEST_F(TokenLabels, LabelsThatTrainingLacks_AreCountedInTests) {
  testing::write(folder_ / "train.txt", kColumns);
  testing::write(folder_ / "test.txt", "\ncats B-X\nsat B-NEW\n");
  const LogCapture log;
  const auto source = open("token_labels", "test.txt", "", false, "train.txt");
  EXPECT_THAT(log.captured_log(), HasSubstr("B-NEW (" + (folder_ / "test.txt") + ":3)"));
  EXPECT_EQ(source->weight(0, 0), 1);
  const auto labels = sample_of(*source, 0).at("token_labels");
  EXPECT_THAT(std::vector(labels.begin(), labels.begin() + 4), ElementsAre(-100, 0, -100, -100));
}

TEST_F(TokenLabels, WrongLines_NameFileAndLine) {
  const auto place = [&](const std::string& file, const std::string& content,
                         const std::string& more = "") {
    testing::write(folder_ / file, content);
    const Error error = thrown_by([&] { open("token_labels", file, more); });
    EXPECT_THAT(error, IsUsageError());
    return error.where();
  };
  EXPECT_THAT(place("a.txt", "the O\nword\n"), HasSubstr("a.txt:2"));
  EXPECT_THAT(
      place("a.jsonl", "{\"tokens\": [\"a\"], \"labels\": [\"O\"]}\n{\"tokens\": [\"a\"]}\n"),
      HasSubstr("a.jsonl:2"));
  EXPECT_THAT(place("a.jsonl", "{\"tokens\": [\"a\", \"b\"], \"labels\": [\"O\"]}\n"),
              HasSubstr("a.jsonl:1"));
  EXPECT_THAT(place("a.jsonl", "[1]\n"), HasSubstr("a.jsonl:1"));
  EXPECT_THAT(place("b.txt", "the O\ncat X\n", R"(, "class_names": ["O", "B"])"),
              HasSubstr("b.txt:2"));
  EXPECT_THAT(place("c.txt", "\n"), HasSubstr("data.train.file"));
}

}  // namespace
}  // namespace fleet::data
