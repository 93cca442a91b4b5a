// Tables of texts with labels: formats, wrong rows, classes, truncation.
#include <gmock/gmock.h>

#include "data/table_file.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;
using testing::TempFolder;
using testing::write;

std::vector<std::string> rows_of(const std::string& path, std::vector<std::string> columns,
                                 bool header = true) {
  std::vector<std::string> rows;
  read_table(path, {.columns = std::move(columns), .header = header}, [&](const TableRow& row) {
    std::string text = std::to_string(row.line);
    for (const std::string& field : row.fields) text += "|" + field;
    rows.push_back(row.wrong.empty() ? text : std::to_string(row.line) + " wrong");
  });
  return rows;
}

TEST(TableFile, Csv_FollowsRfc4180) {
  const TempFolder folder;
  write(folder / "a.csv",
        "\xEF\xBB\xBFtext,label\r\n\"a, \"\"b\"\"\r\nc\",1\r\n\nplain \"d\",2\r\nonly\r\n\"e\",\n"
        "\"f,3\n");
  EXPECT_THAT(rows_of(folder / "a.csv", {"text", "label"}),
              ElementsAre("2|a, \"b\"\r\nc|1", "5|plain \"d\"|2", "6 wrong", "7|e|", "8 wrong"));
}

TEST(TableFile, Tsv_TakesQuotesAsTheyAre) {
  const TempFolder folder;
  write(folder / "a.tsv", "index\tsentence\tlabel\n0\t\"it's\" fine \t1\n1\tx\n2\ta \" b\t0");
  EXPECT_THAT(rows_of(folder / "a.tsv", {"label", "sentence"}),
              ElementsAre("2|1|\"it's\" fine ", "3 wrong", "4|0|a \" b"));
}

TEST(TableFile, TsvWithoutHeader_HasNumberedColumns) {  // as CoLA's
  const TempFolder folder;
  write(folder / "a.tsv", "gj04\t1\t\tOne text.\ngj04\t0\t*\tAnother.\n");
  EXPECT_THAT(rows_of(folder / "a.tsv", {"4", "2"}, false),
              ElementsAre("1|One text.|1", "2|Another.|0"));
  EXPECT_EQ(thrown_by([&] { rows_of(folder / "a.tsv", {"text"}, false); }).code(),
            ErrorCode::kUsage);
}

TEST(TableFile, JsonLines_GiveTextsAndNumbers) {
  const TempFolder folder;
  write(folder / "a.jsonl",
        "{\"text\": \"a\\nb\", \"label\": 3}\n\n{\"text\": \"c\"}\nnone\n{\"label\": true, "
        "\"text\": \"d\"}\n");
  EXPECT_THAT(rows_of(folder / "a.jsonl", {"text", "label"}),
              ElementsAre("1|a\nb|3", "3 wrong", "4 wrong", "5|d|true"));
}

TEST(TableFile, UnknownColumnOrEnding_IsRefusedAtTheFile) {
  const TempFolder folder;
  write(folder / "a.csv", "text,label\nx,1\n");
  EXPECT_THAT(thrown_by([&] { rows_of(folder / "a.csv", {"body"}); }),
              IsError(ErrorCode::kUsage, folder / "a.csv"));
  write(folder / "a.parquet", "x");
  EXPECT_THAT(thrown_by([&] { rows_of(folder / "a.parquet", {"text"}); }),
              IsError(ErrorCode::kUsage, folder / "a.parquet"));
}

TEST(TableFile, QuoteThatIsNotClosed_TellsHowManyLinesItTakes) {
  const TempFolder folder;
  write(folder / "a.csv", "text,label\na,1\n\"b,1\nc,1\nd,1\n");
  std::vector<std::string> wrong;
  read_table(folder / "a.csv", {.columns = {"text"}},
             [&](const TableRow& row) { wrong.push_back(row.wrong); });
  ASSERT_THAT(wrong, ElementsAre("", ::testing::Ne("")));
  EXPECT_NE(wrong[1].find(" 3 "), std::string::npos) << wrong[1];
}

class LabelledText : public ::testing::Test {
 protected:
  void SetUp() override {
    write(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\n");
  }

  std::unique_ptr<InputPipeline> open(const std::string& more, bool train = true,
                                      int64_t classes = 2,
                                      const std::string& source = "labelled_text") const {
    const Settings data = testing::settings_of(
        source, R"({"root": ")" + folder_.path() +
                    R"(", "tokenizer": "vocab.txt", "sequence_length": 6, "batch_size": 2,
                        "shuffle": false, "async": false, )" +
                    more + "}");
    auto pipeline = make_pipeline(data, train, {.classes = classes, .vocabulary = 8});
    if (pipeline) pipeline->start_epoch(0);
    return pipeline;
  }
  template <typename T>
  static std::vector<T> column(const Batch& batch, const std::string& name) {
    const std::span<const std::byte> bytes = batch.column(name);
    const T* values = reinterpret_cast<const T*>(bytes.data());
    return {values, values + bytes.size() / sizeof(T)};
  }

  const TempFolder folder_;
};

TEST_F(LabelledText, Pairs_AreRowsWithSegmentsAndPadding) {
  write(folder_ / "train.tsv", "one\ttwo\tgold\na\tb\tyes\na b c d\tc d\tno\n");
  const auto pipeline = open(
      R"("train": {"file": "train.tsv"}, "text_column": "one", "text_pair_column": "two",
         "label_column": ["gold"])");
  EXPECT_THAT(pipeline->source().class_names(), ElementsAre("no", "yes"));
  const Batch& batch = *pipeline->next();
  EXPECT_THAT(column<int64_t>(batch, "input_ids"), ElementsAre(2, 4, 3, 5, 3, 0, 2, 4, 5, 3, 6, 3));
  EXPECT_THAT(column<int64_t>(batch, "token_type_ids"),
              ElementsAre(0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(column<int64_t>(batch, "position_ids"),
              ElementsAre(0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(column<int64_t>(batch, "document_ids"),
              ElementsAre(0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(column<int64_t>(batch, "label"), ElementsAre(1, 0));
}

TEST_F(LabelledText, WrongRows_AreLeftOutOrEndTheJob) {
  write(folder_ / "train.csv", "text,label\na,0\n ,1\nb,7\nc\nd,1\n");
  const std::string keys = R"("train": {"file": "train.csv"})";
  const auto pipeline = open(keys);
  EXPECT_EQ(pipeline->samples(), 2);
  EXPECT_THAT(column<int64_t>(*pipeline->next(), "label"), ElementsAre(0, 1));
  EXPECT_THAT(thrown_by([&] { open(keys + R"(, "on_damaged": "fail")"); }),
              IsError(ErrorCode::kUsage, folder_ / "train.csv:3"));
}

TEST_F(LabelledText, NumbersThatLeaveOutClass0_AreRefused) {
  const std::string keys = R"("train": {"file": "train.csv"})";
  for (const char* labels : {"text,label\na,1\nb,2\n", "text,label\na,-1\nb,1\n"}) {
    write(folder_ / "train.csv", labels);
    EXPECT_THAT(thrown_by([&] { open(keys); }), IsError(ErrorCode::kUsage, "data.train.file"));
  }
  EXPECT_THAT(column<int64_t>(*open(keys + R"(, "class_names": ["1", "-1"])")->next(), "label"),
              ElementsAre(1, 0));
  write(folder_ / "train.csv", "text,label\na,1\nb,1\n");
  EXPECT_EQ(open(keys)->samples(), 2) << "class 1 alone";
}

TEST_F(LabelledText, NumbersWithClassNames_AreClassNumbers) {
  write(folder_ / "train.csv", "text,label\na,1\nb,0\n");
  write(folder_ / "test.csv", "text,label\na,1\nb,pos\nc,2\n");
  const std::string keys = R"("train": {"file": "train.csv"}, "test": {"file": "test.csv"},
                              "class_names": ["neg", "pos"])";
  EXPECT_THAT(column<int64_t>(*open(keys)->next(), "label"), ElementsAre(1, 0));
  EXPECT_THAT(open(keys)->source().class_names(), ElementsAre("neg", "pos"));
  EXPECT_THAT(column<int64_t>(*open(keys, false)->next(), "label"), ElementsAre(1, 1));
  write(folder_ / "train.csv", "text,label\na,neg\nb,0\nc,pos\n");
  EXPECT_EQ(open(keys)->samples(), 2) << "a stray number among names";
}

TEST_F(LabelledText, EvaluationWithClassNames_NeedsNoTrainingData) {
  const std::string keys = R"("train": {"file": "elsewhere.csv"}, "test": {"file": "test.csv"},
                              "class_names": ["neg", "pos"])";
  for (const char* rows : {"text,label\na,pos\nb,neg\n", "text,label\na,1\nb,0\n"}) {
    write(folder_ / "test.csv", rows);
    EXPECT_THAT(column<int64_t>(*open(keys, false)->next(), "label"), ElementsAre(1, 0)) << rows;
  }
}

TEST_F(LabelledText, BytesThatAreNotUtf8_AreLeftOut) {
  write(folder_ / "train.csv", "text,label\na,0\nb\xE9,1\nc,1\n");
  const std::string keys = R"("train": {"file": "train.csv"})";
  EXPECT_EQ(open(keys)->samples(), 2);
  EXPECT_THAT(thrown_by([&] { open(keys + R"(, "on_damaged": "fail")"); }),
              IsError(ErrorCode::kUsage, folder_ / "train.csv:3"));
}

TEST_F(LabelledText, ClassThatTrainingLacks_IsLeftOutOfTheTestData) {
  write(folder_ / "train.jsonl", R"({"text": "a", "label": "x"})"
                                 "\n"
                                 R"({"text": "b", "label": "y"})");
  write(folder_ / "test.jsonl", R"({"text": "a", "label": "z"})"
                                "\n"
                                R"({"text": "b", "label": "y"})");
  const std::string keys = R"("train": {"file": "train.jsonl"}, "test": {"file": "test.jsonl"})";
  const auto test = open(keys, false);
  EXPECT_EQ(test->samples(), 1);
  EXPECT_EQ(test->source().label(0), 1);
  EXPECT_EQ(thrown_by([&] { open(keys, true, 3); }).where(), "model.num_classes");
  EXPECT_THAT(open(keys + R"(, "class_names": ["y", "x", "z"])", true, 3)->source().label(0), 1);
}

TEST_F(LabelledText, LongTexts_AreCutOrRefusedByTheRule) {
  write(folder_ / "train.csv", "text,second,label\na b c d,c d a b,0\n");
  const auto ids = [&](const std::string& rule) {
    return column<int64_t>(*open(R"("train": {"file": "train.csv"}, "text_pair_column": "second",
                                    "truncation": ")" +
                                 rule + "\"")
                                ->next(),
                           "input_ids");
  };
  EXPECT_THAT(ids("longest_first"), ElementsAre(2, 4, 3, 6, 7, 3, 2, 4, 3, 6, 7, 3));
  EXPECT_THAT(thrown_by([&] { ids("error"); }),
              IsError(ErrorCode::kUsage, folder_ / "train.csv:2"));
  // Either text alone would be cut away: no row is left.
  EXPECT_EQ(thrown_by([&] { ids("only_first"); }).where(), "data.train.file");
}

TEST_F(LabelledText, Scores_AreTargets) {
  write(folder_ / "train.tsv", "text\tx\ty\na\t1.5\t-2\nb\tnan\t0\nc d\t0\t4e1\n");
  const auto pipeline =
      open(R"("train": {"file": "train.tsv"}, "label_column": ["x", "y"])", true, 2, "scored_text");
  EXPECT_THAT(column<float>(*pipeline->next(), "targets"), ElementsAre(1.5f, -2, 0, 40));
}

}  // namespace
}  // namespace fleet::data
