#include "base/sudden_end.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace fleet {
namespace {

// A folder of its own for each test.
class OwnFiles : public ::testing::Test {
 protected:
  ~OwnFiles() override { std::filesystem::remove_all(folder_); }
  std::string made(const std::string& name) const {
    std::ofstream(folder_ + "/" + name).put('x');
    return folder_ + "/" + name;
  }

  std::string folder_ = [] {
    std::string pattern = ::testing::TempDir() + "fleet_own_files.XXXXXX";
    return std::string(::mkdtemp(pattern.data()));
  }();
};

TEST_F(OwnFiles, Destroyed_RemovesItsFile) {
  const std::string path = made("a.sock");
  {
    OwnFile file(AT_FDCWD, path);
    const OwnFile moved(std::move(file));
    EXPECT_FALSE(file);  // NOLINT(bugprone-use-after-move): moved from is none
    EXPECT_EQ(moved.name(), path);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(OwnFiles, Assigned_RemovesTheFormerFile) {
  const std::string former = made("a"), next = made("b");
  OwnFile file(AT_FDCWD, former);
  file = OwnFile(AT_FDCWD, next);
  EXPECT_FALSE(std::filesystem::exists(former));
  EXPECT_TRUE(std::filesystem::exists(next));
}

TEST_F(OwnFiles, SuddenEnd_RemovesTheFilesOfThisProcessOnly) {
  const std::string parents = made("parent");
  const std::string childs = made("child");
  const std::string given_up = made("given_up");
  const OwnFile own(AT_FDCWD, parents);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int opened = ::open(folder_.c_str(), O_PATH | O_DIRECTORY);
    const OwnFile file(opened, "child");
    OwnFile removed(AT_FDCWD, given_up);
    removed.remove();
    made("given_up");  // another process's, by now
    remove_own_files();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(parents));
  EXPECT_FALSE(std::filesystem::exists(childs));
  EXPECT_TRUE(std::filesystem::exists(given_up));
}

TEST_F(OwnFiles, MoreThanItCanKeep_AreStillRemovedByDestructors) {
  std::vector<std::string> paths;
  {
    std::vector<OwnFile> files;
    for (int i = 0; i < 40; ++i) {
      paths.push_back(made(std::to_string(i)));
      files.emplace_back(AT_FDCWD, paths.back());
    }
  }
  for (const std::string& path : paths) EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

}  // namespace
}  // namespace fleet
