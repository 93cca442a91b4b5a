#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "node/log_file.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes `output` in random pieces into files of max_size.
std::vector<std::string> files_of(const std::string& output, int64_t max_size, size_t longest) {
  std::mt19937 random(3);
  std::vector<std::string> files(1);
  for (size_t at = 0; at < output.size();) {
    std::string_view piece = std::string_view(output).substr(at, 1 + random() % longest);
    at += piece.size();
    while (!piece.empty()) {
      std::string& file = files.back();
      const LogCut cut = cut_log(piece, static_cast<int64_t>(file.size()),
                                 file.empty() || file.back() == '\n', max_size);
      file += piece.substr(0, cut.bytes);
      piece.remove_prefix(cut.bytes);
      if (cut.full) {
        files.emplace_back();
      } else if (!piece.empty()) {
        ADD_FAILURE() << "neither taken nor full";
        return files;
      }
    }
  }
  return files;
}

std::string joined(const std::vector<std::string>& files) {
  std::string all;
  for (const std::string& file : files) all += file;
  return all;
}

TEST(CutLog, Lines_AreNotTornAndFilesNotTooLong) {
  std::mt19937 random(5);
  std::string output;
  for (int i = 0; i < 5000; ++i) output += std::string(random() % 200, 'x') + "\n";
  for (const size_t longest : {1u, 50u, 5000u}) {
    const std::vector<std::string> files = files_of(output, 2000, longest);
    EXPECT_EQ(joined(files), output);
    EXPECT_GT(files.size(), 200u);
    for (size_t i = 0; i + 1 < files.size(); ++i) {
      EXPECT_TRUE(files[i].ends_with('\n'));
      EXPECT_LE(files[i].size(), 2200u);
    }
  }
}

TEST(CutLog, LineLongerThanAFile_StaysWhole) {
  const std::string output = "a\n" + std::string(5000, 'x') + "\nb\n";
  const std::vector<std::string> files = files_of(output, 1000, 300);
  EXPECT_EQ(joined(files), output);
  EXPECT_THAT(files, testing::Contains(testing::HasSubstr(std::string(5000, 'x') + "\n")));
}

TEST(CutLog, EndlessLine_IsBounded) {
  std::string bar;
  for (int i = 0; i < 50'000; ++i) bar += "\r" + std::to_string(i) + " of 50000";
  for (const std::string& output : {bar, std::string(1 << 20, 'x')}) {
    const std::vector<std::string> files = files_of(output, 1000, 100'000);
    EXPECT_EQ(joined(files), output);
    for (const std::string& file : files) EXPECT_LE(file.size(), 1000u + kLongestLogLine);
  }
  EXPECT_TRUE(files_of(bar, 1000, 100'000)[0].ends_with('\r'));
}

TEST(LogQuota, OldestPieces_GoFirst) {
  LogQuota bound(100);
  for (int i = 0; i < 4; ++i) {
    bound.grow(30);
    EXPECT_THAT(
        bound.excess(),
        i < 3 ? IsEmpty() : testing::Matcher<std::vector<std::string>>(ElementsAre("piece0")));
    bound.close("piece" + std::to_string(i), 30);
  }
  bound.grow(65);
  EXPECT_THAT(bound.excess(), ElementsAre("piece1", "piece2"));
  bound.grow(1000);
  EXPECT_THAT(bound.excess(), ElementsAre("piece3"));
  EXPECT_THAT(bound.excess(), IsEmpty());
}

TEST(LogQuota, None_KeepsEverything) {
  LogQuota bound(0);
  bound.grow(1'000'000'000'000);
  bound.close("piece", 1'000'000'000'000);
  EXPECT_THAT(bound.excess(), IsEmpty());
}

TEST(FindLogPieces, OnlyNumbersCount) {
  std::string pattern = ::testing::TempDir() + "fleet_pieces.XXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  for (const char* name :
       {"workerlog.1", "workerlog.1.2", "workerlog.1.10", "workerlog.1.stack", "workerlog.1.err",
        "workerlog.1.err.1", "workerlog.10.1", "workerlog.1.2x", "workerlog.1.0"}) {
    std::ofstream(folder + "/" + name) << "12345";
  }
  const std::vector<LogPiece> pieces = find_log_pieces(folder + "/workerlog.1");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].path, folder + "/workerlog.1.2");
  EXPECT_EQ(pieces[1].path, folder + "/workerlog.1.10");
  EXPECT_EQ(pieces[1].number, 10);
  EXPECT_EQ(pieces[0].size, 5);
  EXPECT_THAT(find_log_pieces("/no/such/folder/workerlog.0"), IsEmpty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fleet
