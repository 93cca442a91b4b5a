#include "node/step_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kNsPerSecond = 1'000'000'000;
// The moment at which the tests begin, on both clocks.
constexpr int64_t kWrittenAt = 5000 * kNsPerSecond, kUnix = 1'800'000'000 * kNsPerSecond;

struct StepFileTest : ::testing::Test {
  StepFileTest() {
    std::string pattern = ::testing::TempDir() + "fleet_steps.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder + "/steps";
    file.emplace(path);
  }
  ~StepFileTest() override { std::filesystem::remove_all(folder); }

  void append(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }
  // `after`: seconds since kWrittenAt at which the file was last changed.
  void set_changed(double after) const {
    const auto ns = kUnix + static_cast<int64_t>(after * kNsPerSecond);
    const timespec times[] = {{ns / kNsPerSecond, ns % kNsPerSecond},
                              {ns / kNsPerSecond, ns % kNsPerSecond}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  std::vector<std::string> read(bool ended = false) {
    std::vector<std::string> texts;
    for (const StepText& line : file->read(kWrittenAt, kUnix, ended)) texts.push_back(line.text);
    return texts;
  }

  std::string folder, path;
  std::optional<StepFile> file;
};

TEST_F(StepFileTest, MissingFile_HasNoLines) {
  EXPECT_THAT(read(), IsEmpty());
  append("a\n");
  EXPECT_THAT(read(), ElementsAre("a"));
  EXPECT_THAT(StepFile("").read(kWrittenAt, kUnix), IsEmpty());
}

TEST_F(StepFileTest, LinesInHalves_ComeOnceAndWhole) {
  append("one\r\ntw");
  EXPECT_THAT(read(), ElementsAre("one"));
  append("o");
  EXPECT_THAT(read(), IsEmpty());
  append("\n\n  three\nlast");
  EXPECT_THAT(read(), ElementsAre("two", "three"));
  EXPECT_THAT(read(true), ElementsAre("last"));
  EXPECT_THAT(read(true), IsEmpty());
  EXPECT_EQ(file->bytes(), 22);
}

TEST_F(StepFileTest, TruncatedFile_IsReadFromItsBeginning) {
  append("one\ntwo\nhal");
  EXPECT_THAT(read(), ElementsAre("one", "two"));
  std::ofstream(path, std::ios::trunc) << "new\n";
  EXPECT_THAT(read(), ElementsAre("new"));
}

// The writer continues at its own position.
TEST_F(StepFileTest, HoleOfATruncatedFile_IsSkipped) {
  std::ofstream writer(path);
  writer << std::string(1000, 'x') << '\n' << std::flush;
  read();
  std::filesystem::resize_file(path, 0);
  EXPECT_THAT(read(), IsEmpty());
  writer << "{}\n" << std::flush;
  EXPECT_THAT(read(), ElementsAre("{}"));
}

TEST_F(StepFileTest, RemovedAndReplacedFiles_AreFollowed) {
  append("one\n");
  EXPECT_THAT(read(), ElementsAre("one"));
  std::filesystem::remove(path);
  EXPECT_THAT(read(), IsEmpty());
  append("two\n");
  EXPECT_THAT(read(), ElementsAre("two"));
  std::filesystem::rename(path, path + ".1");
  std::ofstream(path + ".1", std::ios::app) << "three\n";
  append("four\n");
  EXPECT_THAT(read(), ElementsAre("three"));
  EXPECT_THAT(read(), ElementsAre("four"));
}

TEST_F(StepFileTest, LinksPipesAndFolders_AreNotRead) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(read(), IsEmpty());
  std::filesystem::remove(path);
  std::ofstream(folder + "/other") << "one\n";
  std::filesystem::create_symlink(folder + "/other", path);
  EXPECT_THAT(read(), IsEmpty());
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(StepFileTest, FileThatGrowsFast_IsReadFromItsLastLines) {
  std::string text;
  for (int line = 0; text.size() < 4 * StepFile::kMostBytes; ++line) {
    text += std::to_string(line) + std::string(100, ' ') + "\n";
  }
  append(text + "end\n");
  const std::vector<std::string> lines = read();
  EXPECT_LE(lines.size(), StepFile::kMostBytes / 100);
  EXPECT_GE(lines.size(), StepFile::kMostBytes / 120);
  EXPECT_EQ(lines.back(), "end");
  EXPECT_EQ(file->bytes(), static_cast<int64_t>(text.size() + 4));
}

TEST_F(StepFileTest, HugeFile_CostsNoMoreThanItsEnd) {
  append("one\n");
  std::filesystem::resize_file(path, uintmax_t{1} << 33);
  append("\ntwo\n");
  EXPECT_THAT(read(), ElementsAre("two"));
}

TEST_F(StepFileTest, EndlessLine_IsOneDamagedReport) {
  append(std::string(100'000, 'x'));
  append(std::string(100'000, 'x') + "\nnext\n");
  const std::vector<std::string> lines = read();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_LE(lines[0].size(), 2 * StepLineFinder::kLongest);
  EXPECT_EQ(lines[1], "next");
}

TEST_F(StepFileTest, Times_EndWithTheLastChange) {
  append("a\nb\n");
  set_changed(-0.25);
  std::vector<StepText> lines = file->read(kWrittenAt, kUnix);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at_ns, kWrittenAt - kNsPerSecond / 4);  // it is not known since when
  EXPECT_EQ(lines[1].at_ns, kWrittenAt - kNsPerSecond / 4);
  append("c\nd\n");
  set_changed(0.75);
  lines = file->read(kWrittenAt + kNsPerSecond, kUnix + kNsPerSecond);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at_ns, kWrittenAt + kNsPerSecond / 4);
  EXPECT_EQ(lines[1].at_ns, kWrittenAt + 3 * kNsPerSecond / 4);
}

TEST_F(StepFileTest, WrongClockOfAFileServer_IsBounded) {
  append("a\n");
  set_changed(1000);
  EXPECT_EQ(file->read(kWrittenAt, kUnix)[0].at_ns, kWrittenAt);
  append("b\n");
  set_changed(-1000);
  EXPECT_EQ(file->read(kWrittenAt + kNsPerSecond, kUnix + kNsPerSecond)[0].at_ns, kWrittenAt);
}

}  // namespace
}  // namespace fleet
