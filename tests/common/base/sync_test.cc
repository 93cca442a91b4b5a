#include "base/sync.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "tests/captured_log.h"
#include "tests/errors.h"

namespace fleet {
namespace {

int sync_error = 0;

int fail_to_sync(int) {
  errno = sync_error;
  return -1;
}

struct SyncTest : ::testing::Test {
  SyncTest() {
    make_directories(folder);
    file = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  }
  ~SyncTest() override { std::filesystem::remove_all(folder); }
  const std::string folder = ::testing::TempDir() + "/sync_test." + std::to_string(::getpid());
  const std::string path = folder + "/file";
  UniqueFd file;
};

TEST_F(SyncTest, FileSystemThatCan_IsSilent) {
  EXPECT_EQ(captured_log([&] {
              sync_file(file.get(), path);
              sync_folder(folder);
            }),
            "");
}

// Before other tests with a refused folder: the warning comes once per process.
TEST_F(SyncTest, FolderThatCannotBeFlushed_IsOneWarning) {
  const std::string log = captured_log([&] {
    for (const int error : {EINVAL, ENOTSUP, EOPNOTSUPP, ENOSYS, ENOTTY, EACCES, EPERM, EBADF}) {
      sync_error = error;
      sync_folder(folder, fail_to_sync);
    }
  });
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, ::testing::HasSubstr(folder));
}

TEST_F(SyncTest, FolderThatMayNotBeRead_IsNoError) {
  ASSERT_EQ(::chmod(folder.c_str(), 0300), 0);
  EXPECT_NO_THROW(sync_folder(folder));
  ::chmod(folder.c_str(), 0700);
}

TEST_F(SyncTest, FileThatCannotBeFlushed_IsOneWarning) {
  const std::string log = captured_log([&] {
    for (const int error : {EINVAL, EOPNOTSUPP, ENOSYS, ENOTTY}) {
      sync_error = error;
      sync_file(file.get(), path, fail_to_sync);
    }
  });
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(SyncTest, DataThatMayBeLost_IsAnError) {
  for (const int error : {EIO, ENOSPC, EDQUOT}) {
    sync_error = error;
    EXPECT_THAT(thrown_by([&] { sync_folder(folder, fail_to_sync); }),
                IsError(ErrorCode::kIo, folder));
    EXPECT_THAT(thrown_by([&] { sync_file(file.get(), path, fail_to_sync); }),
                IsError(ErrorCode::kIo, path));
  }
  sync_error = EACCES;  // of a file: its writes may not have reached the server
  EXPECT_THAT(thrown_by([&] { sync_file(file.get(), path, fail_to_sync); }),
              IsError(ErrorCode::kIo, path));
  EXPECT_THAT(thrown_by([&] { sync_folder(folder + "/none"); }),
              IsError(ErrorCode::kIo, folder + "/none"));
}

}  // namespace
}  // namespace fleet
