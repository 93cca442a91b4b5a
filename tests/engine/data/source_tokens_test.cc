// The source `tokens` in the pipeline: order and bits of batches, the divisor of the loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"
#include "text/token_file.h"

namespace fleet::data {
namespace {

constexpr uint32_t kEnd = 9;

struct TokenBatch {
  std::vector<int64_t> samples, inputs, positions, documents, labels;
  std::vector<float> weights;
  std::vector<uint64_t> keys;
  float denominator = 0;
  double weight = 0;
  bool operator==(const TokenBatch&) const = default;
};

template <typename T>
std::vector<T> values(const Batch& batch, const std::string& name) {
  const auto found =
      std::ranges::find(batch.columns, name, [](const BatchColumn& one) { return one.name; });
  EXPECT_NE(found, batch.columns.end()) << name;
  std::vector<T> all(found->data.size() / sizeof(T));
  std::memcpy(all.data(), found->data.data(), found->data.size());
  return all;
}

TokenBatch tokens_of(const Batch& batch) {
  EXPECT_TRUE(batch.images.empty());
  EXPECT_TRUE(batch.labels.empty());
  return {.samples = {batch.samples.begin(), batch.samples.end()},
          .inputs = values<int64_t>(batch, "input_ids"),
          .positions = values<int64_t>(batch, "position_ids"),
          .documents = values<int64_t>(batch, "document_ids"),
          .labels = values<int64_t>(batch, "labels"),
          .weights = values<float>(batch, "loss_weight"),
          .keys = {batch.keys.begin(), batch.keys.end()},
          .denominator = batch.denominator,
          .weight = batch.weight};
}

class TokenSourceTest : public ::testing::Test {
 protected:
  // Documents of 1 to 30 tokens from 100 on, each with its end, in the format of nanoGPT.
  void write_documents(const std::string& name, int count, int64_t longest = 30) {
    text::TokenWriter writer(folder_ / name, text::TokenFormat::kNanoGpt,
                             text::TokenWidth::kUint16);
    uint32_t next = 100;
    for (int i = 0; i < count; ++i) {
      std::vector<uint32_t> document;
      for (int64_t t = 0; t < 1 + i * 7 % longest; ++t) document.push_back(next++ % 5000 + 100);
      document.push_back(kEnd);
      writer.add(document);
    }
    writer.finish();
  }
  std::unique_ptr<InputPipeline> open(const std::string& more, const PipelineContext& context = {},
                                      bool train = true) {
    const std::string json = R"({"root": ")" + folder_.path() +
                             R"(", "end_of_text": "9", "train": {"file": "train.bin"})" + more +
                             "}";
    return make_pipeline(testing::settings_of("tokens", json), train, context);
  }
  static std::vector<TokenBatch> batches(InputPipeline& pipeline, int64_t epoch,
                                         int64_t first = 0) {
    std::vector<TokenBatch> all;
    pipeline.start_epoch(epoch, first);
    for (const Batch* batch = pipeline.next(); batch; batch = pipeline.next()) {
      all.push_back(tokens_of(*batch));
    }
    return all;
  }
  testing::TempFolder folder_;
};

constexpr char kRows[] = R"(, "sequence_length": 16, "batch_size": )";

TEST_F(TokenSourceTest, GlobalBatches_DoNotDependOnTheNumberOfRanks) {
  write_documents("train.bin", 40);
  for (const char* packing : {"best_fit", "none", "stream"}) {
    const std::string more = R"(, "packing": ")" + std::string(packing) + R"(")" + kRows;
    const auto whole = batches(*open(more + "4"), 1);
    ASSERT_GT(whole.size(), 3u);
    for (const int ranks : {2, 4}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const int64_t size = 4 / ranks, length = 16;
        const auto part =
            batches(*open(more + std::to_string(size), {.rank = rank, .ranks = ranks}), 1);
        ASSERT_EQ(part.size(), whole.size());
        for (size_t b = 0; b < part.size(); ++b) {
          EXPECT_TRUE(std::equal(part[b].inputs.begin(), part[b].inputs.end(),
                                 whole[b].inputs.begin() + rank * size * length));
          EXPECT_TRUE(std::equal(part[b].labels.begin(), part[b].labels.end(),
                                 whole[b].labels.begin() + rank * size * length));
          EXPECT_TRUE(std::equal(part[b].keys.begin(), part[b].keys.end(),
                                 whole[b].keys.begin() + rank * size));
          EXPECT_EQ(part[b].denominator * static_cast<float>(ranks), whole[b].denominator);
        }
      }
    }
  }
}

TEST_F(TokenSourceTest, EpochBegunInTheMiddle_HasTheSameBits) {
  write_documents("train.bin", 40);
  for (const char* async : {"true", "false"}) {
    const std::string more = kRows + std::string(R"(3, "async": )") + async;
    const auto pipeline = open(more);
    const auto whole = batches(*pipeline, 2);
    for (const int64_t first : {1, 4}) {
      const auto rest = batches(*open(more), 2, first);
      EXPECT_EQ(rest, std::vector<TokenBatch>(whole.begin() + first, whole.end()));
    }
    EXPECT_NE(batches(*pipeline, 3), whole);
  }
}

// Weighted tokens of all ranks and merged steps, divided by their number.
TEST_F(TokenSourceTest, Denominator_IsTheMeanOverRanksAndMergedSteps) {
  write_documents("train.bin", 37, 23);
  const std::string more = R"(, "packing": "none")" + std::string(kRows) + "2";
  const int ranks = 3, merged = 2;
  std::vector<std::vector<TokenBatch>> by_rank;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto pipeline = open(more, {.rank = rank, .ranks = ranks});
    pipeline->set_merged_steps(merged);
    by_rank.push_back(batches(*pipeline, 0));
  }
  bool ragged = false;
  for (size_t b = 0; b + merged <= by_rank[0].size(); b += merged) {
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      for (int k = 0; k < merged; ++k) {
        const TokenBatch& batch = by_rank[rank][b + k];
        double own = 0;
        for (const float weight : batch.weights) own += weight;
        EXPECT_EQ(batch.weight, own);
        ragged |= own != by_rank[0][b].weight;
        sum += own;
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (int k = 0; k < merged; ++k) {
        EXPECT_FLOAT_EQ(by_rank[rank][b + k].denominator,
                        static_cast<float>(sum / (ranks * merged)));
      }
    }
  }
  EXPECT_TRUE(ragged);
}

// The last global batch has rows for one rank only.
TEST_F(TokenSourceTest, RankWithoutAWeightedToken_HasTheOthersDenominator) {
  write_documents("train.bin", 1, 30);
  write_documents("five.bin", 5, 30);
  const std::string more = R"(, "packing": "none", "shuffle": false, "sequence_length": 32,
      "batch_size": 2, "train": {"file": "five.bin"})";
  std::vector<TokenBatch> last;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string json =
        R"({"root": ")" + folder_.path() + R"(", "end_of_text": "9")" + more + "}";
    const auto pipeline =
        make_pipeline(testing::settings_of("tokens", json), true, {.rank = rank, .ranks = 2});
    last.push_back(batches(*pipeline, 0).back());
  }
  EXPECT_GT(last[0].weight, 0);
  EXPECT_EQ(last[1].weight, 0);
  EXPECT_EQ(last[1].weights, std::vector<float>(64, 0));
  EXPECT_EQ(last[0].denominator, last[1].denominator);
  EXPECT_FLOAT_EQ(last[0].denominator, static_cast<float>(last[0].weight / 2));
}

TEST_F(TokenSourceTest, PlaceholderBatch_HasNoWeightAndTheDenominatorOfItsPlace) {
  write_documents("train.bin", 40);
  const auto pipeline = open(kRows + std::string("4"));
  const auto whole = batches(*pipeline, 0);
  pipeline->start_epoch(0);
  pipeline->next();
  const TokenBatch batch = tokens_of(*pipeline->placeholder_batch());
  EXPECT_EQ(batch.weights, std::vector<float>(4 * 16, 0));
  EXPECT_EQ(batch.denominator, whole[1].denominator);
}

TEST_F(TokenSourceTest, ValidationSplit_DividesDocuments) {
  write_documents("train.bin", 40);
  const std::string more = R"(, "validation_split": 0.25, "packing": "none")" +
                           std::string(R"(, "sequence_length": 32, "batch_size": 1)");
  const auto train = open(more), test = open(more, {}, false);
  EXPECT_EQ(train->samples(), 30);
  EXPECT_EQ(test->samples(), 10);
}

TEST_F(TokenSourceTest, EvaluationWindows_CountEachTokenOnce) {
  write_documents("train.bin", 3);
  write_documents("test.bin", 10);
  int64_t tokens = 0;
  for (int i = 0; i < 10; ++i) tokens += 1 + i * 7 % 30;
  const std::string more = kRows + std::string(R"(3, "test": {"file": "test.bin"},
      "evaluation": {"windows": "rolling"})");
  double sum = 0;
  for (const TokenBatch& batch : batches(*open(more, {}, false), 0)) {
    sum += batch.weight;
  }
  EXPECT_EQ(sum, static_cast<double>(tokens));
}

TEST_F(TokenSourceTest, WrongSettings_AreRefused) {
  write_documents("train.bin", 3);
  const auto refused = [&](const std::string& more, const std::string& where) {
    EXPECT_THAT(thrown_by([&] { open(more); }), IsError(ErrorCode::kUsage, where)) << more;
  };
  refused(R"(, "augment": {"flip": true})", "data.augment.flip");
  refused(R"(, "mean": [0.5])", "data.mean");
  refused(R"(, "evaluation": {"stride": 4})", "data.evaluation.stride");
  refused(R"(, "evaluation": {"prefix": "4"})", "data.evaluation.prefix");
  refused(R"(, "sequence_length": 8, "evaluation": {"windows": "strided", "stride": 9})",
          "data.evaluation.stride");
  refused(R"(, "packing": "stream", "sequence_length": 4000)", "train.bin");
}

TEST_F(TokenSourceTest, Declaration_EqualsTheColumnsOfTheOpenedSource) {
  write_documents("train.bin", 3);
  const Settings settings = testing::settings_of(
      "tokens", R"({"root": ")" + folder_.path() +
                    R"(", "sequence_length": 12, "train": {"file": "train.bin"}})");
  const auto declared = declared_columns(settings, {});
  const auto opened = make_pipeline(settings, true, {})->columns();
  ASSERT_EQ(declared.size(), opened.size());
  for (size_t i = 0; i < opened.size(); ++i) {
    EXPECT_EQ(declared[i].name, opened[i].name);
    EXPECT_EQ(declared[i].dtype, opened[i].dtype);
    EXPECT_EQ(declared[i].shape, opened[i].shape);
  }
  EXPECT_EQ(declared[0].shape, (Shape{12}));
  EXPECT_FALSE(check_data_settings(settings, {}).has_test);
}

TEST_F(TokenSourceTest, SeveralFiles_AreOneSequence) {
  write_documents("all.bin", 20);
  text::TokenFile all(folder_ / "all.bin");
  std::vector<uint32_t> ids(all.size());
  all.copy(0, std::span(ids));
  for (int part = 0; part < 3; ++part) {
    text::TokenWriter writer(folder_ / ("part_" + std::to_string(part) + ".bin"),
                             text::TokenFormat::kNanoGpt, text::TokenWidth::kUint16);
    const size_t begin = ids.size() * part / 3, end = ids.size() * (part + 1) / 3;
    writer.add(std::span(ids).subspan(begin, end - begin));
    writer.finish();
  }
  const auto read = [&](const std::string& file) {
    const std::string json = R"({"root": ")" + folder_.path() +
                             R"(", "end_of_text": "9", "sequence_length": 16, "batch_size": 2,
                                "train": {"file": )" +
                             file + "}}";
    return batches(*make_pipeline(testing::settings_of("tokens", json), true, {}), 0);
  };
  const auto whole = read(R"("all.bin")");
  EXPECT_EQ(read(R"("part_*.bin")"), whole);
  EXPECT_EQ(read(R"("part_{0..2}.bin")"), whole);
  EXPECT_EQ(read(R"(["part_0.bin", "part_[12].bin"])"), whole);
}

TEST_F(TokenSourceTest, TokenBeyondTheVocabulary_IsFoundWhenTheFileIsOpened) {
  write_documents("train.bin", 40);
  text::TokenFile file(folder_ / "train.bin");
  std::vector<uint32_t> ids(file.size());
  file.copy(0, std::span(ids));
  const auto largest = std::ranges::max_element(ids);
  const auto size = static_cast<int64_t>(*largest);
  EXPECT_NO_THROW(open(kRows + std::string("2"), {.vocabulary = size + 1}));
  const std::string message =
      testing::message_of([&] { open(kRows + std::string("2"), {.vocabulary = size}); });
  EXPECT_THAT(message,
              ::testing::HasSubstr("the token id " + std::to_string(size) + " at position " +
                                   std::to_string(largest - ids.begin()) +
                                   " is not below model.vocab_size, " + std::to_string(size)));
  EXPECT_THAT(message, ::testing::HasSubstr("train.bin"));
}

TEST_F(TokenSourceTest, NamedTokenBeyondTheVocabulary_IsRefusedByItsKey) {
  write_documents("train.bin", 3);
  const auto refused = [&](const std::string& more, const std::string& where) {
    const Settings settings = testing::settings_of(
        "tokens", R"({"root": ")" + folder_.path() + R"(", "train": {"file": "train.bin"})" + more +
                      kRows + "1}");
    const PipelineContext context{.vocabulary = 200};
    EXPECT_THAT(thrown_by([&] { check_data_settings(settings, context); }), IsUsageError(where));
    EXPECT_THAT(thrown_by([&] { make_pipeline(settings, true, context); }), IsUsageError(where));
  };
  refused(R"(, "end_of_text": "200")", "data.end_of_text");
  EXPECT_THAT(thrown_by([&] {
                check_data_settings(
                    testing::settings_of("tokens", R"({"root": ")" + folder_.path() +
                                                       R"(", "train": {"file": "train.bin"},
                        "evaluation": {"windows": "rolling", "prefix": "200"}})"),
                    {.vocabulary = 200});
              }),
              IsUsageError("data.evaluation.prefix"));
}

TEST_F(TokenSourceTest, MissingFile_IsNamedWithItsKey) {
  const Settings settings = testing::settings_of(
      "tokens", R"({"root": ")" + folder_.path() + R"(", "train": {"file": "none.bin"}})");
  for (const auto& message : {testing::message_of([&] { check_data_settings(settings, {}); }),
                              testing::message_of([&] { make_pipeline(settings, true, {}); })}) {
    EXPECT_THAT(message, ::testing::HasSubstr("data.train.file"));
    EXPECT_THAT(message, ::testing::HasSubstr("none.bin does not exist"));
  }
}

}  // namespace
}  // namespace fleet::data
