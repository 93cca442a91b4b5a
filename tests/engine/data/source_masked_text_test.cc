// The source `masked_text`: its columns, masks by epoch and rank, and keys that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kPad = 0, kCls = 2, kSep = 3, kMask = 4, kLength = 24, kSlots = 4;

// Words "wa" to "wz", and "##a" to "##z", which continue them.
std::string word_piece(const std::string& mask = "[MASK]", const std::string& prefix = "##") {
  const std::vector<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", mask};
  std::string vocabulary, added;
  int id = 0;
  const auto add = [&](const std::string& token) {
    vocabulary += (id ? ", \"" : "\"") + token + "\": " + std::to_string(id);
    ++id;
  };
  for (const std::string& token : special) {
    added += (id ? ", {\"id\": " : "{\"id\": ") + std::to_string(id) + R"(, "content": ")" + token +
             R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
             "special": true})";
    add(token);
  }
  for (char c = 'a'; c <= 'z'; ++c) add(std::string("w") + c);
  for (char c = 'a'; c <= 'z'; ++c) add(prefix + c);
  add(".");
  return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [)" + added +
         R"(], "normalizer": {"type": "BertNormalizer", "clean_text": true,
             "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null, "decoder": null,
            "model": {"type": "WordPiece", "unk_token": "[UNK]",
                      "continuing_subword_prefix": ")" +
         prefix + R"(", "max_input_chars_per_word": 100, "vocab": {)" + vocabulary + "}}}";
}

class MaskedTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write(folder_ / "tokenizer.json", word_piece());
    std::string text;
    for (int d = 0; d < 12; ++d) {
      for (int s = 0; s < 2 + d % 5; ++s) {
        for (int w = 0; w < 2 + (d + s) % 5; ++w) {
          text += std::string("w") + static_cast<char>('a' + (d * 5 + s * 3 + w) % 26);
          if (w % 2 == 1) text += static_cast<char>('a' + w);
          text += ' ';
        }
        text += ".\n";
      }
      text += "\n";
    }
    testing::write(folder_ / "a.txt", text);
  }

  Settings settings(const std::string& more = "", int batch = 1) const {
    return testing::settings_of(
        "masked_text", R"({"root": ")" + folder_.path() +
                           R"(", "tokenizer": "tokenizer.json", "token_cache": ")" +
                           folder_.path() + R"(/cache", "sequence_length": 24, "sentences": "lines",
            "train": {"file": "a.txt"}, "test": {"file": "a.txt"}, "batch_size": )" +
                           std::to_string(batch) + more + "}");
  }

  using Row = std::map<std::string, std::vector<int64_t>>;
  static std::vector<int64_t> values(const Batch& batch, const std::string& name) {
    const std::span<const std::byte> bytes = batch.column(name);
    if (name != "loss_weight") {
      const auto* from = reinterpret_cast<const int64_t*>(bytes.data());
      return {from, from + bytes.size() / sizeof(int64_t)};
    }
    const auto* from = reinterpret_cast<const float*>(bytes.data());
    return {from, from + bytes.size() / sizeof(float)};
  }
  // The tokens of a row before they were masked.
  static std::vector<int64_t> unmasked(const Row& row) {
    std::vector<int64_t> ids = row.at("input_ids");
    for (size_t i = 0; i < row.at("masked_labels").size(); ++i) {
      const int64_t label = row.at("masked_labels")[i];
      if (label >= 0) ids[row.at("masked_positions")[i]] = label;
    }
    return ids;
  }
  // The batches of an epoch.
  static std::vector<Row> epoch_of(InputPipeline& pipeline, int64_t epoch) {
    pipeline.start_epoch(epoch);
    std::vector<Row> rows;
    for (const Batch* batch = pipeline.next(); batch; batch = pipeline.next()) {
      Row row;
      for (const BatchColumn& column : batch->columns) {
        row[column.name] = values(*batch, column.name);
      }
      row["real"] = {batch->real};
      rows.push_back(row);
    }
    return rows;
  }
  std::vector<Row> rows(const std::string& more = "", bool train = true, int64_t epoch = 0) const {
    return epoch_of(*make_pipeline(settings(more), train, {}), epoch);
  }
  Error refusal(const std::string& more, PipelineContext context = {}) const {
    const Settings given = settings(more);
    EXPECT_THAT(thrown_by([&] { check_data_settings(given, context); }),
                IsError(ErrorCode::kUsage));
    return thrown_by([&] { make_pipeline(given, true, context); });
  }
  testing::TempFolder folder_;
};

TEST_F(MaskedTextTest, Columns_AreThoseOfPairs) {
  int64_t labels = 0;
  const std::vector<Row> all = rows();
  ASSERT_GT(all.size(), 10u);
  for (const Row& row : all) {
    ASSERT_EQ(row.size(), 9u);
    const std::vector<int64_t> ids = unmasked(row);
    const auto& documents = row.at("document_ids");
    ASSERT_THAT(ids, SizeIs(kLength));
    const auto size = std::ranges::count(documents, 0);
    EXPECT_EQ(ids[0], kCls);
    EXPECT_EQ(ids[size - 1], kSep);
    EXPECT_EQ(std::ranges::count(ids, kSep), 2);
    const auto first = std::ranges::find(ids, kSep) - ids.begin() + 1;
    for (int64_t i = 0; i < kLength; ++i) {
      EXPECT_EQ(documents[i], i < size ? 0 : -1);
      EXPECT_EQ(row.at("position_ids")[i], i < size ? i : 0);
      EXPECT_EQ(row.at("token_type_ids")[i], i >= first && i < size ? 1 : 0);
      EXPECT_EQ(ids[i] == kPad, i >= size);
    }
    labels += row.at("next_sentence_label")[0];
  }
  EXPECT_GT(labels, 0);
  EXPECT_LT(labels, static_cast<int64_t>(all.size()));
}

TEST_F(MaskedTextTest, MaskedSlots_NameEveryChange) {
  for (const Row& row : rows()) {
    const auto& weights = row.at("loss_weight");
    ASSERT_THAT(row.at("masked_positions"), SizeIs(kSlots));
    const int64_t size = std::ranges::count(row.at("document_ids"), 0);
    const auto used = std::ranges::count(weights, 1);
    EXPECT_EQ(used, std::max<int64_t>(1, std::lrint(0.15 * static_cast<double>(size))));
    for (int64_t i = 0; i < kSlots; ++i) {
      EXPECT_EQ(weights[i], i < used ? 1 : 0);
      const int64_t place = row.at("masked_positions")[i], label = row.at("masked_labels")[i];
      EXPECT_EQ(label == -100, i >= used);
      EXPECT_TRUE(i < used ? label > kMask : place == 0);
    }
    for (int64_t i = 0; i < kLength; ++i) {
      if (row.at("input_ids")[i] != kMask) continue;
      EXPECT_NE(std::ranges::find(row.at("masked_positions"), i), row.at("masked_positions").end());
    }
  }
}

TEST_F(MaskedTextTest, Masks_AreNewInEachEpochAndTheSameAgain) {
  const std::string in_order = R"(, "shuffle": false, "next_sentence": false)";
  const std::vector<Row> first = rows(in_order), other = rows(in_order, true, 1);
  EXPECT_EQ(first, rows(in_order));
  ASSERT_EQ(first.size(), other.size());
  int64_t same = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    same += first[i].at("masked_positions") == other[i].at("masked_positions") ? 1 : 0;
    EXPECT_EQ(unmasked(first[i]), unmasked(other[i])) << "full sentences are not drawn";
    EXPECT_EQ(first[i].at("document_ids"), other[i].at("document_ids"));
  }
  EXPECT_LT(same, static_cast<int64_t>(first.size()) / 3);
}

TEST_F(MaskedTextTest, Pairs_AreNewInEachEpochAndTheSameAgain) {
  const std::string in_order = R"(, "shuffle": false)";
  const std::vector<Row> first = rows(in_order), other = rows(in_order, true, 1);
  EXPECT_EQ(first, rows(in_order));
  ASSERT_EQ(first.size(), other.size());
  int64_t same = 0, same_label = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    same += unmasked(first[i]) == unmasked(other[i]) ? 1 : 0;
    same_label += first[i].at("next_sentence_label") == other[i].at("next_sentence_label") ? 1 : 0;
  }
  EXPECT_LT(same, static_cast<int64_t>(first.size()) / 2);
  EXPECT_LT(same_label, static_cast<int64_t>(first.size()));
  EXPECT_EQ(rows("", false), rows("", false, 1)) << "an evaluation";
}

// Batches of two on one rank have the rows of batches of one on two ranks.
TEST_F(MaskedTextTest, Ranks_ShareTheRowsAndDenominatorsOfOne) {
  for (const char* more : {"", R"(, "whole_word_masking": true)"}) {
    const auto one = make_pipeline(settings(more, 2), true, {.seed = 3});
    std::vector<std::unique_ptr<InputPipeline>> two;
    for (int rank = 0; rank < 2; ++rank) {
      two.push_back(make_pipeline(settings(more), true, {.rank = rank, .ranks = 2, .seed = 3}));
      two.back()->start_epoch(1);
    }
    one->start_epoch(1);
    int64_t batches = 0;
    for (const Batch* whole = one->next(); whole; whole = one->next(), ++batches) {
      std::vector<int64_t> ids, labels;
      double weight = 0;
      for (const auto& part : two) {
        const Batch* batch = part->next();
        ASSERT_NE(batch, nullptr);
        const auto more_ids = values(*batch, "input_ids");
        const auto more_labels = values(*batch, "masked_labels");
        ids.insert(ids.end(), more_ids.begin(), more_ids.end());
        labels.insert(labels.end(), more_labels.begin(), more_labels.end());
        weight += batch->weight;
        EXPECT_FLOAT_EQ(2 * batch->denominator, whole->denominator);
        EXPECT_FLOAT_EQ(2 * batch->sample_denominator, static_cast<float>(whole->real));
      }
      EXPECT_EQ(ids, values(*whole, "input_ids"));
      EXPECT_EQ(labels, values(*whole, "masked_labels"));
      EXPECT_EQ(weight, whole->weight);
      EXPECT_FLOAT_EQ(whole->denominator, static_cast<float>(whole->weight));
    }
    EXPECT_GT(batches, 4);
  }
}

TEST_F(MaskedTextTest, WholeWords_AreMaskedTogether) {
  constexpr int64_t kFirstPiece = 31;
  const std::vector<Row> all =
      rows(R"(, "shuffle": false, "masking_rate": 0.4, "whole_word_masking": true)");
  int64_t pieces = 0;
  for (const Row& row : all) {
    const auto& places = row.at("masked_positions");
    const auto& labels = row.at("masked_labels");
    for (size_t i = 0; i < places.size(); ++i) {
      if (labels[i] < kFirstPiece || labels[i] >= kFirstPiece + 26) continue;
      ++pieces;
      ASSERT_GT(i, 0u);
      EXPECT_EQ(places[i - 1], places[i] - 1);
    }
  }
  EXPECT_GT(pieces, 5);
}

TEST_F(MaskedTextTest, FullSentences_HaveNoPairs) {
  int64_t full = 0;
  const std::vector<Row> all = rows(R"(, "next_sentence": false)");
  for (const Row& row : all) {
    EXPECT_FALSE(row.contains("next_sentence_label"));
    EXPECT_THAT(row.at("token_type_ids"), Each(0));
    full += std::ranges::count(row.at("document_ids"), 0) > kLength - 12 ? 1 : 0;
  }
  EXPECT_GE(full, static_cast<int64_t>(all.size()) - 1);
}

TEST_F(MaskedTextTest, ValidationSplit_DividesTheDocuments) {
  const std::string more = R"(, "next_sentence": false, "validation_split": 0.3)";
  const Settings given = testing::settings_of(
      "masked_text", R"({"root": ")" + folder_.path() +
                         R"(", "tokenizer": "tokenizer.json", "token_cache": ")" + folder_.path() +
                         R"(/cache", "sequence_length": 24, "sentences": "lines", "batch_size": 1,
                         "train": {"file": "a.txt"})" +
                         more + "}");
  const auto count = [](const std::vector<Row>& all) {
    int64_t tokens = 0;
    for (const Row& row : all) {
      for (const int64_t id : row.at("document_ids")) tokens += id == 0 ? 1 : 0;
      tokens -= 1 + std::ranges::count(unmasked(row), kSep);
    }
    return tokens;
  };
  const auto train = epoch_of(*make_pipeline(given, true, {}), 0);
  const auto test = epoch_of(*make_pipeline(given, false, {}), 0);
  EXPECT_EQ(count(train) + count(test), count(rows(R"(, "next_sentence": false)")));
  EXPECT_GT(test.size(), 0u);
}

TEST_F(MaskedTextTest, KeysThatContradict_AreRefused) {
  EXPECT_THAT(refusal(R"(, "next_sentence": false, "short_sequences": 0.2)"),
              IsUsageError("data.short_sequences"));
  EXPECT_THAT(refusal(R"(, "masked_tokens": 25)"), IsUsageError("data.masked_tokens"));
  EXPECT_THAT(refusal(R"(, "cls_token": "none")"), IsUsageError("data.cls_token"));
  EXPECT_THAT(refusal(R"(, "pad_token": "99")"), IsUsageError("data.pad_token"));
  EXPECT_THAT(refusal("", {.vocabulary = 20}), IsUsageError("data.tokenizer"));
}

TEST_F(MaskedTextTest, TokenizerThatLacksSomething_IsRefused) {
  testing::write(folder_ / "tokenizer.json", word_piece("[OTHER]"));
  EXPECT_THAT(refusal(""), IsUsageError("data.mask_token"));
  EXPECT_GT(rows(R"(, "mask_token": "[OTHER]")").size(), 0u);
  testing::write(folder_ / "tokenizer.json", word_piece("[MASK]", "+"));
  EXPECT_THAT(refusal(R"(, "whole_word_masking": true)"), IsUsageError("data.whole_word_masking"));
}

}  // namespace
}  // namespace fleet::data
