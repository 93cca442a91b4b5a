#include "observe/event_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(EventLine, Values_KeepTheirOrderAndTypes) {
  EventLine event("train");
  event.add("step", 3)
      .add("loss", 0.25)
      .add("last", true)
      .add("host", "a")
      .add("sizes", std::vector<int64_t>{1, 2});
  EXPECT_EQ(
      event.json(12.3456),
      R"({"event":"train","time":12.346,"step":3,"loss":0.25,"last":true,"host":"a","sizes":[1,2]})");
}

TEST(EventLine, TextWithQuotesNewlinesAndBadBytes_StaysOneValidLine) {
  EventLine event("note");
  event.add("text", std::string("a\"b\\c\nd\x01\xff"));
  EXPECT_EQ(event.json(0),
            "{\"event\":\"note\",\"time\":0.0,\"text\":\"a\\\"b\\\\c\\nd\\u0001\xEF\xBF\xBD\"}");
}

TEST(EventLine, NumbersThatAreNotFinite_AreNull) {
  const double inf = std::numeric_limits<double>::infinity();
  EventLine event("e");
  event.add("a", std::numeric_limits<double>::quiet_NaN())
      .add("b", std::vector<double>{inf, -inf, 1});
  EXPECT_EQ(event.json(0), R"({"event":"e","time":0.0,"a":null,"b":[null,null,1.0]})");
}

class EventFileTest : public ::testing::Test {
 protected:
  std::string folder_ =
      (std::filesystem::temp_directory_path() / ("event_file_test." + std::to_string(::getpid())))
          .string();
  std::string path_ = folder_ + "/deeper/metrics.jsonl";
  ~EventFileTest() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> lines() const { return split(trim(read_file(path_)), '\n'); }
};

TEST_F(EventFileTest, RemovedWithItsFolder_IsMadeAnew) {
  EventFile file(path_);
  file.write(EventLine("one"));
  std::filesystem::remove_all(folder_);
  file.write(EventLine("two"));
  EXPECT_THAT(lines(), ElementsAre(StartsWith(R"({"event":"two")")));
  std::filesystem::remove_all(folder_);
  std::ofstream(folder_) << "in the way";
  EXPECT_THROW(file.write(EventLine("three")), Error);
  std::filesystem::remove(folder_);
  file.write(EventLine("four"));
  EXPECT_THAT(lines(), ElementsAre(StartsWith(R"({"event":"four")")));
}

// A limit on the size of files stands for a disk that is full.
TEST_F(EventFileTest, FullDisk_KeepsWholeLinesAndGoesOnLater) {
  EventFile file(path_);
  file.write(EventLine("one"));
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = std::filesystem::file_size(path_) + 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(file.write(EventLine("two")), Error);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  file.write(EventLine("three"));
  EXPECT_THAT(lines(),
              ElementsAre(StartsWith(R"({"event":"one")"), StartsWith(R"({"event":"three")")));
}

TEST_F(EventFileTest, OpenedAgain_Appends) {
  EventFile(path_).write(EventLine("one"));
  EventFile(path_).write(EventLine("two"));
  EXPECT_THAT(lines(),
              ElementsAre(StartsWith(R"({"event":"one")"), StartsWith(R"({"event":"two")")));
}

TEST_F(EventFileTest, LastLineCutOffByACrash_IsEndedNotContinued) {
  std::filesystem::create_directories(folder_ + "/deeper");
  std::ofstream(path_) << "{\"event\":\"cu";
  EventFile(path_).write(EventLine("next"));
  EXPECT_THAT(lines(), ElementsAre("{\"event\":\"cu", StartsWith(R"({"event":"next")")));
}

TEST_F(EventFileTest, SeveralThreads_WriteWholeLines) {
  EventFile file(path_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) file.write(EventLine("e").add("text", std::string(500, 'x')));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto all = lines();
  EXPECT_EQ(all.size(), 200u);
  for (const std::string& line : all) {
    EXPECT_TRUE(line.starts_with("{\"event\":\"e\"") && line.ends_with("xxx\"}")) << line;
  }
}

TEST_F(EventFileTest, FolderThatCannotBeMade_NamesIt) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/file") << "x";
  try {
    EventFile file(folder_ + "/file/metrics.jsonl");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(error.where(), folder_ + "/file");
  }
}

}  // namespace
}  // namespace fleet
