#include "base/file_status.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

class FileStatus : public ::testing::Test {
 protected:
  FileStatus() { make_directories(folder_); }
  ~FileStatus() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  const std::string folder_ =
      ::testing::TempDir() + "/file_status_test." + std::to_string(::getpid());
};

TEST_F(FileStatus, DistinguishesFileFolderMissing) {
  write_file_atomically(path("file"), "");
  std::filesystem::create_symlink("nowhere", path("broken"));
  EXPECT_TRUE(path_exists(path("file")));
  EXPECT_FALSE(is_folder(path("file")));
  EXPECT_TRUE(is_folder(folder_));
  EXPECT_FALSE(path_exists(path("broken")));
  EXPECT_FALSE(path_exists(path("file/below")));
  EXPECT_FALSE(is_folder(path("missing")));
}

TEST_F(FileStatus, PathThatCannotBeExamined_IsNamed) {
  std::filesystem::create_symlink("loop", path("loop"));
  for (const auto& examine : {path_exists, is_folder}) {
    try {
      examine(path("loop"));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_EQ(error.where(), path("loop"));
    }
  }
}

}  // namespace
}  // namespace fleet
