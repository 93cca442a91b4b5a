#include "daemon/file_watcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/file.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

struct FileWatchTest : ::testing::Test {
  FileWatchTest() {
    std::string pattern = ::testing::TempDir() + "fleet_watch.XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~FileWatchTest() override { std::filesystem::remove_all(folder); }
  static void add(const std::string& path) { std::ofstream(path, std::ios::app) << "x"; }
  void run_until(const std::function<bool()>& done) {
    for (int i = 0; i < 60 && !done(); ++i) loop.run_one_for(std::chrono::seconds(1));
    EXPECT_TRUE(done());
  }

  std::string folder;
  EventLoop loop;
};

TEST_F(FileWatchTest, File_IsWatchedByName) {
  FileWatcher watch(loop);
  const std::string path = folder + "/log";
  int changes = 0, of_folder = 0;
  const int id = watch.watch_file(path, [&] { ++changes; });
  watch.watch_folder(folder, [&](const std::string&) { ++of_folder; });  // shares what is watched
  add(path);
  run_until([&] { return changes > 0; });
  std::filesystem::rename(path, path + ".1");
  loop.poll();
  changes = 0;
  add(path);  // another one
  run_until([&] { return changes > 0; });
  EXPECT_GT(of_folder, 0);
  loop.poll();
  changes = of_folder = 0;
  add(folder + "/other");
  run_until([&] { return of_folder > 0; });
  EXPECT_EQ(changes, 0);
  watch.unwatch(id);
  of_folder = 0;
  add(path);
  run_until([&] { return of_folder > 0; });
  EXPECT_EQ(changes, 0);
}

// More events than the kernel keeps: every watch reports that events may be missing.
TEST_F(FileWatchTest, OverflowingQueue_IsReported) {
  FileWatcher watch(loop);
  bool missed = false;
  int most = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
  if (most > 100'000) GTEST_SKIP() << "the queue holds " << most;
  watch.watch_folder(folder, [&](const std::string& file) { missed = missed || file.empty(); });
  for (int i = 0; i < most; ++i) {
    add(folder + "/a");  // in turns: equal ones become one
    add(folder + "/b");
  }
  run_until([&] { return missed || loop.poll() == 0; });
  EXPECT_TRUE(missed);
}

}  // namespace
}  // namespace fleet
