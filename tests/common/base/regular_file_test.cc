#include "base/regular_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReadRegularFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "fleet-regular-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string refusal(const std::string& path, ErrorCode code, int64_t most = 100) {
    try {
      read_regular_file(path, most);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << path << " was read";
    return {};
  }
  std::string folder_;
};

TEST_F(ReadRegularFile, Content_UpToTheLimit) {
  std::ofstream(folder_ + "/a") << "hundred";
  EXPECT_EQ(read_regular_file(folder_ + "/a", 7), "hundred");
  EXPECT_THAT(refusal(folder_ + "/a", ErrorCode::kUsage, 6), StartsWith(folder_ + "/a: "));
  EXPECT_FALSE(read_regular_file("/proc/self/status", 1 << 20).empty()) << "a file without a size";
}

// Opening a pipe without a writer would wait forever.
TEST_F(ReadRegularFile, WhatIsNoFile_IsNamedAtOnce) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder_ + "/pipe", ErrorCode::kUsage), HasSubstr("it is a pipe"));
  EXPECT_THAT(refusal("/dev/zero", ErrorCode::kUsage), StartsWith("/dev/zero: "));
  EXPECT_THAT(refusal(folder_, ErrorCode::kUsage), StartsWith(folder_ + ": "));
  EXPECT_THAT(refusal(folder_ + "/no", ErrorCode::kNotFound), StartsWith(folder_ + "/no: "));
}

// A rename over /dev/null would take it away from everybody.
TEST_F(ReadRegularFile, Replaceable_IsNothingButAFile) {
  const auto refusal_to_replace = [](const std::string& path) -> std::string {
    try {
      check_replaceable(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.what();
    }
    return "";
  };
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/dev/null", (folder_ + "/link").c_str()), 0);
  std::ofstream(folder_ + "/a") << "old";
  EXPECT_THAT(refusal_to_replace(folder_ + "/pipe"), StartsWith(folder_ + "/pipe: "));
  EXPECT_THAT(refusal_to_replace(folder_ + "/link"), StartsWith(folder_ + "/link: "));
  EXPECT_THAT(refusal_to_replace(folder_), StartsWith(folder_ + ": "));
  EXPECT_EQ(refusal_to_replace(folder_ + "/a"), "");
  EXPECT_EQ(refusal_to_replace(folder_ + "/new"), "");
}

}  // namespace
}  // namespace fleet
