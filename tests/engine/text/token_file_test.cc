#include "text/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/errors.h"

namespace fleet::text {
namespace {

class TokenFileTest : public ::testing::Test {
 protected:
  TokenFileTest() : path_(::testing::TempDir() + "/tokens_" + name() + ".bin") {}
  ~TokenFileTest() override { std::filesystem::remove(path_); }
  static std::string name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void write(TokenFormat format, TokenWidth width, const std::vector<uint32_t>& ids) const {
    TokenWriter writer(path_, format, width);
    writer.add(std::span(ids).first(1));
    writer.add(std::span(ids).subspan(1));
    writer.finish();
  }
  std::vector<int64_t> read(std::optional<TokenWidth> width = {}) const {
    const TokenFile file(path_, width);
    std::vector<int64_t> ids(static_cast<size_t>(file.size()));
    file.copy(0, std::span(ids));
    return ids;
  }
  void put(const std::string& bytes) const { write_file_atomically(path_, bytes); }
  static std::string header(int32_t magic, int32_t version, int32_t count) {
    std::vector<int32_t> words(256);
    words[0] = magic, words[1] = version, words[2] = count;
    return {reinterpret_cast<const char*>(words.data()), 1024};
  }

  const std::string path_;
};

TEST_F(TokenFileTest, NanoGpt_IsTheIdsAlone) {
  write(TokenFormat::kNanoGpt, TokenWidth::kUint16, {1, 0x1234, 65535});
  EXPECT_EQ(read_file(path_), std::string("\x01\x00\x34\x12\xff\xff", 6));
  EXPECT_THAT(read(), ::testing::ElementsAre(1, 0x1234, 65535));
  EXPECT_EQ(TokenFile(path_).format(), TokenFormat::kNanoGpt);
}

TEST_F(TokenFileTest, NanoGptOfUint32_IsReadWhenItIsNamed) {
  write(TokenFormat::kNanoGpt, TokenWidth::kUint32, {1, 70000});
  EXPECT_THAT(read(TokenWidth::kUint32), ::testing::ElementsAre(1, 70000));
  EXPECT_THAT(read(), ::testing::ElementsAre(1, 0, 4464, 1));
}

TEST_F(TokenFileTest, LlmC_HasAHeaderThatSaysTheWidth) {
  write(TokenFormat::kLlmC, TokenWidth::kUint16, {5, 6});
  EXPECT_EQ(read_file(path_), header(20240520, 1, 2) + std::string("\x05\x00\x06\x00", 4));
  EXPECT_THAT(read(), ::testing::ElementsAre(5, 6));
  write(TokenFormat::kLlmC, TokenWidth::kUint32, {128000, 6});
  EXPECT_EQ(read_file(path_).substr(0, 1024), header(20240801, 7, 2));
  EXPECT_THAT(read(), ::testing::ElementsAre(128000, 6));
  EXPECT_EQ(TokenFile(path_).width(), TokenWidth::kUint32);
}

TEST_F(TokenFileTest, DamagedFile_IsRefusedByName) {
  const auto refused = [&](const std::string& bytes, std::optional<TokenWidth> width = {}) {
    put(bytes);
    EXPECT_THAT(thrown_by([&] { TokenFile(path_, width); }), IsUsageError(path_));
  };
  refused("abc");
  refused("abcdef", TokenWidth::kUint32);
  refused(header(20240520, 1, 3) + "abcd");  // two tokens
  refused(header(20240520, 1, 1) + "abcd");
  refused(header(20240520, 1, -1) + "abcd");
  refused(header(20240520, 2, 2) + "abcd");
  refused(header(20240801, 7, 2) + "abcd");
  refused(header(20240520, 1, 2) + "abcd", TokenWidth::kUint32);
}

TEST_F(TokenFileTest, MissingFile_IsNotFound) {
  EXPECT_THAT(thrown_by([&] { TokenFile file(path_); }), IsError(ErrorCode::kNotFound, path_));
}

TEST_F(TokenFileTest, EmptyFile_HasNoTokens) {
  put("");
  EXPECT_EQ(TokenFile(path_).size(), 0);
  EXPECT_EQ(TokenFile(path_).largest_id(), 0u);
}

TEST_F(TokenFileTest, UnfinishedWriter_LeavesTheOldFile) {
  write(TokenFormat::kNanoGpt, TokenWidth::kUint16, {7, 8});
  {
    TokenWriter writer(path_, TokenFormat::kNanoGpt, TokenWidth::kUint16);
    const std::vector<uint32_t> ids = {9, 70000};
    writer.add(std::span(ids).first(1));
    EXPECT_THAT(thrown_by([&] { writer.add(ids); }), IsUsageError(path_));
  }
  EXPECT_THAT(read(), ::testing::ElementsAre(7, 8));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

TEST_F(TokenFileTest, Move_KeepsTheMap) {
  std::vector<uint32_t> ids(300'000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint32_t>(i % 60'000);
  write(TokenFormat::kNanoGpt, TokenWidth::kUint16, ids);
  TokenFile first(path_);
  const TokenFile file = std::move(first);
  EXPECT_EQ(file[299'999], 299'999u % 60'000);
  EXPECT_EQ(file.largest_id(), 59'999u);
  EXPECT_THAT(thrown_by([&] { file[300'000]; }), IsError(ErrorCode::kInternal));
}

TEST(TokenWidth, HoldsEveryIdOfTheVocabulary) {
  EXPECT_EQ(token_width_for(65536), TokenWidth::kUint16);
  EXPECT_EQ(token_width_for(65537), TokenWidth::kUint32);
}

}  // namespace
}  // namespace fleet::text
