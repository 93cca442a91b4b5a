#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/env.h"
#include "base/error.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() { make_directories(folder_); }
  ~FileTest() override { fs::remove_all(folder_); }
  const std::string folder_ =
      (fs::temp_directory_path() / ("file_test." + std::to_string(::getpid())) / "deep").string();
  const std::string path_ = folder_ + "/x";
};

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST_F(FileTest, WrittenAtomically_IsReadBackAndLeavesNoOtherFile) {
  const std::string content("a\0b\n", 4);
  write_file_atomically(path_, "before");
  write_file_atomically(path_, content);
  EXPECT_EQ(read_file(path_), content);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, LargerThanOneRead_IsWhole) {
  const std::string content(300'001, 'y');
  write_file_atomically(path_, content);
  EXPECT_EQ(read_file(path_), content);
}

TEST_F(FileTest, Missing_IsNotFoundAndNamed) {
  try {
    read_file(path_ + ".none");
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(error.where(), path_ + ".none");
  }
}

TEST_F(FileTest, FolderThatCannotBe_IsIo) {
  write_file_atomically(path_, "a file");
  EXPECT_EQ(code_of([&] { make_directories(path_ + "/below"); }), ErrorCode::kIo);
  EXPECT_EQ(code_of([&] { write_file_atomically(path_ + "/below", ""); }), ErrorCode::kIo);
  EXPECT_EQ(code_of([&] { read_file(folder_); }), ErrorCode::kIo);
}

TEST(UniqueFd, MovedAndReset_ClosesEachOnce) {
  const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) != -1; };
  UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = first.get();
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_TRUE(is_open(number));
  second = UniqueFd();
  EXPECT_FALSE(is_open(number));
}

TEST(Env, EmptyValue_CountsAsNotSet) {
  ::setenv("FLEET_TEST_VARIABLE", "", 1);
  EXPECT_EQ(get_env("FLEET_TEST_VARIABLE"), std::nullopt);
  EXPECT_EQ(env_or("FLEET_TEST_VARIABLE", "other"), "other");
  EXPECT_EQ(env_int_or("FLEET_TEST_VARIABLE", 3), 3);
  ::unsetenv("FLEET_TEST_VARIABLE");
}

TEST(Env, NotAnInteger_NamesTheVariable) {
  ::setenv("FLEET_TEST_VARIABLE", "two", 1);
  try {
    env_int_or("FLEET_TEST_VARIABLE", 3);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.where(), "environment FLEET_TEST_VARIABLE");
  }
  ::setenv("FLEET_TEST_VARIABLE", " 12 ", 1);
  EXPECT_EQ(env_int_or("FLEET_TEST_VARIABLE", 3), 12);
  ::unsetenv("FLEET_TEST_VARIABLE");
}

}  // namespace
}  // namespace fleet
