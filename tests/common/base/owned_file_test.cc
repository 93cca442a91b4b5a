#include "base/owned_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uid_t kStranger = 65533;  // no user of any system, as a rule

// Planting needs root: only root can give files to others.
#define NEEDS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user"

class OwnedFile : public ::testing::Test {
 protected:
  OwnedFile() {
    char name[] = "/tmp/fleet_owned_XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(victim_ = folder_ + "/victim") << "precious";
    path_ = folder_ + "/log";
  }
  ~OwnedFile() override {
    EXPECT_EQ(read_file(victim_), "precious");
    fs::current_path(before_);  // a test enters folder_
    fs::remove_all(folder_);
  }
  // A folder in the sticky one that everyone may write.
  std::string shared() const {
    const std::string path = folder_ + "/shared";
    fs::create_directory(path);
    ::chmod(path.c_str(), 01777);
    return path;
  }
  static void give_away(const std::string& path) {
    ASSERT_EQ(::lchown(path.c_str(), kStranger, kStranger), 0);
  }
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "accepted";
    return {};
  }
  // Every way in.
  static void expect_refused(const std::string& path, const std::string& why) {
    for (const int flags : {O_WRONLY, O_RDONLY, O_WRONLY | O_CREAT, O_RDWR | O_CREAT | O_APPEND}) {
      EXPECT_THAT(refusal([&] { open_owned_file(path, flags); }), StartsWith(path + ": "));
    }
    EXPECT_THAT(refusal([&] { check_owned_files({path}); }), HasSubstr(why));
    EXPECT_THAT(refusal([&] { write_owned_file(path, "overwritten"); }), StartsWith(path + ": "));
  }
  const fs::path before_ = fs::current_path();
  std::string folder_, path_, victim_;
};

TEST_F(OwnedFile, NewAndExisting_AreOpened) {
  write_owned_file(path_, "first");
  write_owned_file(path_, "2nd");
  EXPECT_EQ(read_file(path_), "2nd");
  const UniqueFd more = open_owned_file(path_, O_WRONLY | O_CREAT | O_APPEND);
  write_all(more.get(), " and more", path_);
  EXPECT_EQ(read_file(path_), "2nd and more");
  check_owned_files({path_});
  check_owned_files({folder_ + "/none"});
  check_owned_files({folder_ + "/none/deeper"});
  ASSERT_EQ(::chdir(folder_.c_str()), 0);
  check_owned_files({"log"});
  const auto later = [&] { check_owned_files({"log", "none", "./none/log", "/dev/null", "log"}); };
  EXPECT_THAT(refusal(later), StartsWith("/dev/null: "));
  EXPECT_TRUE(open_owned_file("./../" + fs::path(folder_).filename().string() + "//log", O_RDONLY));
  EXPECT_TRUE(open_owned_folder("."));
}

TEST_F(OwnedFile, Missing_IsNotFound) {
  for (const std::string& path : {folder_ + "/none", folder_ + "/none/deeper"}) {
    try {
      open_owned_file(path, O_RDONLY);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    }
  }
}

TEST_F(OwnedFile, Link_IsNotWrittenThrough) {
  fs::create_symlink(victim_, path_);
  expect_refused(path_, "symbolic link");
  fs::create_symlink(folder_ + "/made", folder_ + "/dangling");
  expect_refused(folder_ + "/dangling", "symbolic link");
  EXPECT_FALSE(fs::exists(folder_ + "/made"));
  replace_owned_file(path_, "a new file");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path_)));
  EXPECT_EQ(read_file(path_), "a new file");
}

TEST_F(OwnedFile, PipeSocketAndFolder_AreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_refused(path_, "a pipe");
  fs::create_directory(folder_ + "/folder");
  expect_refused(folder_ + "/folder", "a folder");
  EXPECT_THAT(refusal([] { open_owned_file("/dev/null", O_WRONLY); }), StartsWith("/dev/null: "));
}

TEST_F(OwnedFile, SecondName_IsRefusedWhereOthersMayWrite) {
  const std::string own = folder_ + "/own";
  fs::create_hard_link(victim_, own);
  EXPECT_TRUE(open_owned_file(own, O_RDONLY));
  const std::string planted = shared() + "/log";
  fs::create_hard_link(victim_, planted);
  expect_refused(planted, "second name");
}

TEST_F(OwnedFile, StrangersFile_IsRefused) {
  NEEDS_ROOT();
  const std::string path = shared() + "/log";
  std::ofstream(path) << "";
  give_away(path);
  expect_refused(path, "belongs to");
  // A file of the folder's owner is trusted as much as the folder.
  fs::create_directory(folder_ + "/theirs");
  std::ofstream(folder_ + "/theirs/log") << "";
  give_away(folder_ + "/theirs");
  give_away(folder_ + "/theirs/log");
  write_owned_file(folder_ + "/theirs/log", "fine");
}

TEST_F(OwnedFile, StrangersFolderWhereEveryoneMayWrite_IsRefused) {
  NEEDS_ROOT();
  const std::string planted = shared() + "/log";
  fs::create_directories(planted + "/deeper");
  give_away(planted);
  give_away(planted + "/deeper");
  for (const std::string& path : {planted, planted + "/deeper"}) {
    EXPECT_THAT(refusal([&] { open_owned_folder(path); }),
                AllOf(StartsWith(planted), HasSubstr("belongs to")));
    EXPECT_THAT(refusal([&] { write_owned_file(path + "/file", "x"); }), StartsWith(planted));
    EXPECT_THAT(refusal([&] { replace_owned_file(path + "/file", "x"); }), StartsWith(planted));
    EXPECT_TRUE(fs::is_empty(planted + "/deeper"));
  }
  // A folder of our own in it cannot be another one's.
  fs::create_directory(planted + "/ours");
  write_owned_file(planted + "/ours/file", "fine");
}

TEST_F(OwnedFile, StrangersLink_IsNotFollowedWhereEveryoneMayWrite) {
  NEEDS_ROOT();
  fs::create_directory(folder_ + "/home");
  const std::string link = shared() + "/log";
  fs::create_directory_symlink(folder_ + "/home", link);
  give_away(link);
  EXPECT_THAT(refusal([&] { write_owned_file(link + "/file", "x"); }), StartsWith(link + ": "));
  // Nor below a folder of theirs, where only they may write.
  const std::string planted = shared() + "/folder";
  fs::create_directory(planted);
  fs::create_directory_symlink(folder_ + "/home", planted + "/log");
  give_away(planted);
  give_away(planted + "/log");
  EXPECT_THAT(refusal([&] { write_owned_file(planted + "/log/file", "x"); }),
              HasSubstr("a link of"));
  EXPECT_TRUE(fs::is_empty(folder_ + "/home"));
}

TEST_F(OwnedFile, OwnLinkToAFolder_IsFollowed) {
  fs::create_directories(shared() + "/scratch/me");
  fs::create_directory_symlink("shared/scratch/me", folder_ + "/log");
  fs::create_directory_symlink(folder_ + "/log", shared() + "/again");
  write_owned_file(shared() + "/again/file", "fine");
  EXPECT_EQ(read_file(folder_ + "/shared/scratch/me/file"), "fine");
  fs::create_directory_symlink("loop", folder_ + "/loop");
  EXPECT_THROW(open_owned_folder(folder_ + "/loop"), Error);
}

TEST_F(OwnedFile, ProcessKilledWhileItReplaces_LeavesNothing) {
  const UniqueFd nameless(::open(folder_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (!nameless) GTEST_SKIP() << "/tmp has no files without a name";
  write_owned_file(path_, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit ten_bytes = {10, 10};
    ::setrlimit(RLIMIT_FSIZE, &ten_bytes);
    std::signal(SIGXFSZ, SIG_DFL);
    replace_owned_file(path_, std::string(100, 'x'));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);  // with the victim
}

}  // namespace
}  // namespace fleet
