// Rows of sentences: full sentences and pairs.
#include "data/sentence_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "data/random.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kSentence = 1000, kDocument = 1001, kCls = 1002, kSep = 1003;
constexpr text::SentenceMarks kMarks{kSentence, kDocument};

class Tokens : public TokenSequence {
 public:
  explicit Tokens(std::vector<uint32_t> ids) : ids_(std::move(ids)) {}
  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  void copy(int64_t begin, std::span<uint32_t> to) const override {
    std::copy_n(ids_.begin() + begin, to.size(), to.begin());
  }

 private:
  std::vector<uint32_t> ids_;
};

// Documents of sentences of these lengths. Token d * 100 + i is the i-th of document d.
Tokens tokens_of(const std::vector<std::vector<int>>& documents) {
  std::vector<uint32_t> ids;
  for (uint32_t d = 0; d < documents.size(); ++d) {
    uint32_t next = d * 100;
    for (const int length : documents[d]) {
      for (int i = 0; i < length; ++i) ids.push_back(next++);
      ids.push_back(kSentence);
    }
    ids.push_back(kDocument);
  }
  return Tokens(ids);
}

std::vector<TokenRange> documents_in(const Tokens& tokens) {
  return documents_of(tokens, {.token = kDocument, .begins = false});
}

SentenceRow row_of(const Tokens& tokens, const RowPieces& row) {
  return assemble_row(tokens, kMarks, row.pieces, kCls, kSep);
}

TEST(SentenceRows, FullSentences_FillRowsAcrossDocuments) {
  const Tokens tokens = tokens_of({{2, 3}, {1}, {4, 2}});
  const auto rows = full_sentence_rows(tokens, kMarks, documents_in(tokens), 10);
  ASSERT_EQ(rows->size(), 2);
  const SentenceRow first = row_of(tokens, rows->row(0, 5));
  EXPECT_THAT(first.ids, ElementsAre(kCls, 0, 1, 2, 3, 4, kSep, 100, kSep));
  EXPECT_THAT(first.begins, ElementsAre(1, 1, 0, 1, 0, 0, 1, 1, 1));
  EXPECT_THAT(first.ends, ElementsAre(7, 9));
  EXPECT_THAT(row_of(tokens, rows->row(1, 5)).ids,
              ElementsAre(kCls, 200, 201, 202, 203, 204, 205, kSep));
  EXPECT_EQ(rows->row(0, 5).next_sentence_label, -100);
}

TEST(SentenceRows, FullSentences_LeaveOutNoToken) {
  std::vector<std::vector<int>> lengths(9);
  int64_t all = 0;
  for (int d = 0; d < 9; ++d) {
    for (int s = 0; s < 1 + d * 5 % 7; ++s) {
      lengths[d].push_back(1 + (d * 13 + s * 7) % 14);
      all += lengths[d].back();
    }
  }
  const Tokens tokens = tokens_of(lengths);
  for (const int64_t length : {3, 8, 11, 64}) {
    const auto rows = full_sentence_rows(tokens, kMarks, documents_in(tokens), length);
    std::vector<uint32_t> seen;
    int64_t counted = 0;
    for (int64_t i = 0; i < rows->size(); ++i) {
      const SentenceRow row = row_of(tokens, rows->row(i, 5));
      counted += rows->row(i, 6).tokens;
      EXPECT_LE(row.ids.size(), length);
      for (const uint32_t id : row.ids) {
        if (id < 1000) seen.push_back(id);
      }
    }
    EXPECT_EQ(seen.size(), all) << length;
    EXPECT_TRUE(std::ranges::is_sorted(seen)) << length;
    EXPECT_EQ(counted, all);
  }
}

// 200 documents of 10 sentences each.
Tokens many_documents() {
  std::vector<uint32_t> ids;
  for (uint32_t d = 0; d < 200; ++d) {
    for (uint32_t s = 0; s < 10; ++s) {
      for (uint32_t i = 0; i < 2 + (d + s) % 5; ++i) ids.push_back(d);  // says its document
      ids.push_back(kSentence);
    }
    ids.push_back(kDocument);
  }
  return Tokens(ids);
}

TEST(SentenceRows, Pairs_AreOfOneOrOfTwoDocuments) {
  const Tokens tokens = many_documents();
  const auto rows = sentence_pair_rows(tokens, kMarks, documents_in(tokens), 24, 0.1, 7);
  int64_t random = 0, full = 0, left_out = 0;
  for (int64_t i = 0; i < rows->size(); ++i) {
    const RowPieces pieces = rows->row(i, sample_key(3, 1, i));
    const SentenceRow row = row_of(tokens, pieces);
    ASSERT_EQ(row.ends.size(), 2u);
    ASSERT_LE(row.ids.size(), 24u);
    full += row.ids.size() >= 20 ? 1 : 0;
    EXPECT_EQ(std::ssize(row.ids) - 3, pieces.tokens);
    left_out += pieces.left_out;
    const std::set<uint32_t> a(row.ids.begin() + 1, row.ids.begin() + row.ends[0] - 1);
    const std::set<uint32_t> b(row.ids.begin() + row.ends[0], row.ids.end() - 1);
    ASSERT_EQ(a.size(), 1u);
    ASSERT_EQ(b.size(), 1u);
    EXPECT_EQ(a == b, pieces.next_sentence_label == 0) << i;
    random += pieces.next_sentence_label;
  }
  const auto count = static_cast<double>(rows->size());
  EXPECT_GT(rows->size(), 400);
  // A chunk of one sentence always gets another document's.
  EXPECT_NEAR(static_cast<double>(random) / count, 0.55, 0.08);
  EXPECT_GT(static_cast<double>(full) / count, 0.5);
  EXPECT_GT(left_out, 0);
}

std::vector<TokenRange> pairs_of(const Tokens& tokens, double short_sequences, uint64_t seed,
                                 int64_t epoch = 0) {
  const auto rows =
      sentence_pair_rows(tokens, kMarks, documents_in(tokens), 24, short_sequences, seed);
  std::vector<TokenRange> all;
  for (int64_t i = 0; i < rows->size(); ++i) {
    const RowPieces row = rows->row(i, sample_key(seed, epoch, i));
    all.insert(all.end(), row.pieces.begin(), row.pieces.end());
  }
  return all;
}

TEST(SentenceRows, Pairs_DependOnSeedAndKeyOnly) {
  const Tokens tokens = many_documents();
  EXPECT_EQ(pairs_of(tokens, 0.1, 7), pairs_of(tokens, 0.1, 7));
  EXPECT_NE(pairs_of(tokens, 0.1, 7), pairs_of(tokens, 0.1, 8));
  EXPECT_GT(pairs_of(tokens, 1, 7).size(), pairs_of(tokens, 0, 7).size());
}

TEST(SentenceRows, Pairs_AreDrawnAnewInEachEpoch) {
  const Tokens tokens = many_documents();
  const auto first = pairs_of(tokens, 0.1, 7, 0), second = pairs_of(tokens, 0.1, 7, 1);
  ASSERT_EQ(first.size(), second.size());
  int64_t same = 0, begin_alike = 0;
  for (size_t i = 0; i < first.size(); i += 2) {
    begin_alike += std::abs(first[i].begin - second[i].begin) < 24 ? 1 : 0;
    same += first[i] == second[i] && first[i + 1] == second[i + 1] ? 1 : 0;
  }
  const auto rows = static_cast<double>(first.size()) / 2;
  EXPECT_EQ(begin_alike, static_cast<int64_t>(rows));  // of the same sentences
  EXPECT_LT(static_cast<double>(same) / rows, 0.3);
}

TEST(SentenceRows, PairsOfOneDocument_AreRefused) {
  const Tokens tokens = tokens_of({{2, 3, 4}});
  EXPECT_THAT(
      thrown_by([&] { sentence_pair_rows(tokens, kMarks, documents_in(tokens), 16, 0, 1); }),
      IsUsageError("data.next_sentence"));
}

}  // namespace
}  // namespace fleet::data
