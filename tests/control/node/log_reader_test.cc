#include "node/log_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "base/error.h"
#include "node/log_file.h"

namespace fleet {
namespace {

struct LogReaderTest : ::testing::Test {
  LogReaderTest() {
    std::string pattern = ::testing::TempDir() + "fleet_reader.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder + "/workerlog.0";
    settings.set_max_size(500);
  }
  ~LogReaderTest() override { std::filesystem::remove_all(folder); }
  void read(LogReader* reader) {
    reader->read([&](std::string_view part) { seen += part; });
  }
  std::string folder, path, seen, written;
  wire::LogSettings settings;
};

TEST_F(LogReaderTest, Following_MissesNothingAcrossRotation) {
  LogFolder logs(settings, {path});
  LogReader reader(path);
  EXPECT_FALSE(reader.read([](std::string_view) {}));
  LogFile file(&logs, path, LogFile::Start::kFirst);
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::string line = "line " + std::to_string(i) + std::string(random() % 90, '.') + "\n";
    file.write(line);
    written += line;
    // Sometimes several files are begun between two looks.
    if (random() % 20 == 0) {
      read(&reader);
      EXPECT_EQ(seen, written) << i;
    }
  }
  read(&reader);
  EXPECT_EQ(seen, written);
  EXPECT_GT(find_log_pieces(path).size(), 20u);
  // From the beginning, and only what is written now.
  seen.clear();
  LogReader all(path), current(path, true);
  read(&all);
  EXPECT_EQ(seen, written);
  seen.clear();
  read(&current);
  EXPECT_EQ(seen, read_file(path));
}

// The log is closed again and again while the reader looks for what comes next.
TEST_F(LogReaderTest, RotationWhileItReads_LosesNothing) {
  LogFolder logs(settings, {path});
  for (int i = 0; i < 20'000; ++i) written += "line " + std::to_string(i) + "\n";
  std::atomic<bool> over{false};
  std::thread writer([&] {
    LogFile file(&logs, path, LogFile::Start::kFirst);
    for (size_t at = 0; at < written.size(); at += 100) file.write(written.substr(at, 100));
    over = true;
  });
  LogReader reader(path);
  while (!over) read(&reader);
  writer.join();
  read(&reader);
  EXPECT_TRUE(seen == written) << seen.size() << " of " << written.size() << " bytes";
}

TEST_F(LogReaderTest, PiecesThatWereRemoved_AreSkipped) {
  settings.set_total_size(1500);
  LogFolder logs(settings, {path});
  LogFile file(&logs, path, LogFile::Start::kFirst);
  LogReader reader(path);
  file.write("first\n");
  read(&reader);
  for (int i = 0; i < 300; ++i) file.write("line " + std::to_string(i) + "\n");
  read(&reader);
  EXPECT_TRUE(seen.starts_with("first\n"));
  EXPECT_TRUE(seen.ends_with("line 298\nline 299\n"));
  EXPECT_LT(seen.size(), 2100u);  // what is kept, and the file that was open
}

TEST_F(LogReaderTest, Marks_BoundARunAcrossRotation) {
  LogFolder logs(settings, {path});
  LogFile file(&logs, path, LogFile::Start::kFirst);
  EXPECT_EQ(end_of_log(folder + "/none").file(), 0u);
  const auto write = [&](const std::string& run, int lines) {
    std::string all;
    for (int i = 0; i < lines; ++i) all += run + " " + std::to_string(i) + "\n";
    for (size_t at = 0; at < all.size(); at += 50) file.write(all.substr(at, 50));
    return all;
  };
  const auto between = [&](const LogPosition& begin, const LogPosition& end) {
    LogReader reader(path);
    reader.begin_at(begin);
    reader.end_at(end);
    seen.clear();
    for (int i = 0; i < 3; ++i) read(&reader);  // nothing comes later either
    return seen;
  };
  write("earlier", 70);
  for (const int lines : {0, 1, 30, 500}) {
    const LogPosition begin = end_of_log(path);
    const std::string own = write("own", lines);
    const LogPosition end = end_of_log(path);
    EXPECT_EQ(between(begin, {}), own);
    write("later", 60);
    EXPECT_EQ(between(begin, end), own);
    for (const int64_t most : {1, 100, 700, 1 << 20}) {
      const LogPosition tail = tail_of_log(path, begin, end, most);
      const size_t size = std::min<size_t>(static_cast<size_t>(most), own.size());
      EXPECT_EQ(between(tail, end), own.substr(own.size() - size)) << lines << " " << most;
    }
  }
}

TEST_F(LogReaderTest, BeginThatIsGone_ShowsWhatIsKept) {
  LogFolder logs(settings, {path});
  LogFile file(&logs, path, LogFile::Start::kFirst);
  file.write("all there is\n");
  LogReader reader(path);
  LogPosition gone;
  gone.set_file(1);  // no such file
  gone.set_at(5);
  reader.begin_at(gone);
  read(&reader);
  EXPECT_EQ(seen, "all there is\n");
}

TEST_F(LogReaderTest, Pipe_IsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  LogReader reader(path);
  EXPECT_THROW(reader.next(100), Error);
}

}  // namespace
}  // namespace fleet
