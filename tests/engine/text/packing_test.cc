#include "text/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/errors.h"

namespace fleet::text {
namespace {

std::vector<std::vector<int64_t>> documents_of(const PackedWindows& packed) {
  std::vector<std::vector<int64_t>> windows(packed.size());
  for (size_t i = 0; i < packed.size(); ++i) {
    for (const PackedPiece& piece : packed.window(i)) windows[i].push_back(piece.document);
  }
  return windows;
}

TEST(Packing, Documents_GoWhereTheLeastRoomIsLeft) {
  // 7 opens window 0, 6 window 1; 3 fills window 0 and not the roomier window 1.
  const std::vector<int64_t> lengths = {3, 6, 7, 2, 2};
  const PackedWindows packed = pack_documents(lengths, 10);
  EXPECT_EQ(documents_of(packed), (std::vector<std::vector<int64_t>>{{2, 0}, {1, 3, 4}}));
  EXPECT_EQ(packed.tokens(), 20);
  EXPECT_EQ(packed.left_out(), 0);
}

TEST(Packing, EqualRoom_TheWindowThatCameToItFirst) {
  const std::vector<int64_t> lengths = {6, 6, 4, 4};
  EXPECT_EQ(documents_of(pack_documents(lengths, 10)),
            (std::vector<std::vector<int64_t>>{{0, 2}, {1, 3}}));
}

TEST(Packing, LongDocument_IsSplitTruncatedOrDropped) {
  const std::vector<int64_t> lengths = {9, 1};
  const PackedWindows split = pack_documents(lengths, 4);
  ASSERT_EQ(split.size(), 3u);
  EXPECT_EQ(split.window(1)[0], (PackedPiece{.document = 0, .begin = 4, .tokens = 4}));
  EXPECT_EQ(split.window(2)[0], (PackedPiece{.document = 0, .begin = 8, .tokens = 1}));
  EXPECT_EQ(split.window(2)[1], (PackedPiece{.document = 1, .begin = 0, .tokens = 1}));
  const PackedWindows cut = pack_documents(lengths, 4, LongDocuments::kTruncate);
  EXPECT_EQ(documents_of(cut), (std::vector<std::vector<int64_t>>{{0}, {1}}));
  EXPECT_EQ(cut.left_out(), 5);
  const PackedWindows dropped = pack_documents(lengths, 4, LongDocuments::kDrop);
  EXPECT_EQ(documents_of(dropped), (std::vector<std::vector<int64_t>>{{1}}));
  EXPECT_EQ(dropped.left_out(), 9);
}

TEST(Packing, ManyLengths_EachTokenOnceAndNoWindowOverfull) {
  std::vector<int64_t> lengths;
  uint64_t state = 1;
  for (int i = 0; i < 5000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    lengths.push_back(static_cast<int64_t>((state >> 33) % 700));
  }
  const PackedWindows packed = pack_documents(lengths, 256);
  std::vector<int64_t> seen(lengths.size());
  for (size_t i = 0; i < packed.size(); ++i) {
    int64_t tokens = 0;
    for (const PackedPiece& piece : packed.window(i)) {
      tokens += piece.tokens;
      seen[static_cast<size_t>(piece.document)] += piece.tokens;
    }
    EXPECT_LE(tokens, 256);
    EXPECT_GT(tokens, 0);
  }
  EXPECT_EQ(seen, lengths);
  const int64_t all = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  EXPECT_LE(static_cast<int64_t>(packed.size()) * 256, all + all / 50);  // at most 2 % padding
}

TEST(Packing, NothingToPlace_NoWindow) {
  EXPECT_EQ(pack_documents({}, 8).size(), 0u);
  EXPECT_EQ(pack_documents(std::vector<int64_t>{0, 0}, 8).size(), 0u);
}

TEST(Packing, BadNumbers_AreRefused) {
  const std::vector<int64_t> negative = {-1};
  EXPECT_THAT(thrown_by([&] { pack_documents(negative, 8); }), IsError(ErrorCode::kUsage));
  EXPECT_THAT(thrown_by([] { pack_documents({}, 0); }), IsError(ErrorCode::kUsage));
  EXPECT_THAT(thrown_by([] { StreamWindows(8, 0); }), IsError(ErrorCode::kUsage));
  EXPECT_THAT(thrown_by([] { StreamWindows(8, 2, -1); }), IsError(ErrorCode::kUsage));
}

TEST(StreamWindows, EachHasOneTokenMoreForItsLastLabel) {
  EXPECT_EQ(StreamWindows(9, 4).size(), 2);
  EXPECT_EQ(StreamWindows(8, 4).size(), 1);
  EXPECT_EQ(StreamWindows(4, 4).size(), 0);
  EXPECT_EQ(StreamWindows(0, 4).size(), 0);
  EXPECT_EQ(StreamWindows(9, 4).begin(1), 4);
  EXPECT_EQ(StreamWindows(9, 4, 2).size(), 3);
  EXPECT_EQ(StreamWindows(9, 4, 2).begin(2), 4);
}

}  // namespace
}  // namespace fleet::text
