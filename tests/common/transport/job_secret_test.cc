#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "transport/security.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr char kSecret[] = "0123456789abcdef-secret";

class JobSecret : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/fleet_secret_XXXXXX";
    home_ = ::mkdtemp(name);
    ::setenv("XDG_CONFIG_HOME", home_.c_str(), 1);
    ::unsetenv(kEnvJobSecret);
  }
  void TearDown() override {
    ::unsetenv("XDG_CONFIG_HOME");
    ::unsetenv(kEnvJobSecret);
    std::filesystem::remove_all(home_);
  }
  std::string file(const std::string& content, mode_t mode) {
    const std::string path = home_ + "/file";
    write_file_atomically(path, content);
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::string home_;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST_F(JobSecret, File_WinsOverTheEnvironmentAndThatOverTheDefault) {
  ASSERT_TRUE(make_secret(default_secret_path()));
  EXPECT_THAT(find_secret("", true).security.secret, SizeIs(64));
  ::setenv(kEnvJobSecret, kSecret, 1);
  EXPECT_EQ(find_secret("", true).security.secret, kSecret);
  EXPECT_EQ(find_secret("", true).security.origin, "FLEET_JOB_SECRET");
  const FoundSecret found = find_secret(file("  another 0123456789 secret\n", 0600), true);
  EXPECT_EQ(found.security.secret, "another 0123456789 secret");
  EXPECT_TRUE(found.security.tls);
  EXPECT_FALSE(found.made);
}

TEST_F(JobSecret, Missing_IsMadeOnceForThisUserAlone) {
  const FoundSecret first = find_secret("", true), second = find_secret("", true);
  EXPECT_TRUE(first.made);
  EXPECT_FALSE(second.made);
  EXPECT_EQ(first.security.secret, second.security.secret);
  struct stat status;
  ASSERT_EQ(::stat(default_secret_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(JobSecret, MissingAndNotToBeMade_IsRefused) {
  EXPECT_THAT(message_of([] { find_secret("", false); }),
              HasSubstr("FLEET_JOB_SECRET in the environment, or --secret_file"));
  EXPECT_FALSE(std::filesystem::exists(default_secret_path()));
}

TEST_F(JobSecret, ManyMakersAtOnce_AgreeOnOne) {
  std::vector<std::thread> makers;
  std::vector<std::string> found(8);
  for (std::string& secret : found) {
    makers.emplace_back([&] { secret = find_secret("", true).security.secret; });
  }
  for (std::thread& maker : makers) maker.join();
  EXPECT_THAT(found, testing::Each(found[0]));
}

TEST_F(JobSecret, FileThatOthersMayRead_IsRefused) {
  for (const mode_t mode : {0640, 0604, 0620}) {
    EXPECT_THAT(message_of([&] { read_secret(file(kSecret, mode)); }),
                HasSubstr("other users may read or change"));
  }
}

TEST_F(JobSecret, FileOfRootThatOurGroupMayRead_IsTaken) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  constexpr uid_t kSomebody = 65534;
  const auto as_somebody = [&](const std::string& path) {
    EXPECT_EQ(::setegid(kSomebody) | ::seteuid(kSomebody), 0);
    std::string result;
    try {
      result = read_secret(path);
    } catch (const Error& error) {
      result = error.what();
    }
    EXPECT_EQ(::seteuid(0) | ::setegid(0), 0);
    return result;
  };
  ::chmod(home_.c_str(), 0755);
  std::string path = file(kSecret, 0440);
  ASSERT_EQ(::chown(path.c_str(), 0, kSomebody), 0);
  EXPECT_EQ(as_somebody(path), kSecret);
  for (const mode_t mode : {0444, 0460}) {
    ::chmod(path.c_str(), mode);
    EXPECT_THAT(as_somebody(path), HasSubstr("other users may read or change"));
  }
}

TEST_F(JobSecret, FileThatIsNotThere_IsNamedWithItsOption) {
  EXPECT_THAT(message_of([&] { find_secret("/none", true); }),
              testing::StartsWith("--secret_file /none"));
}

// Otherwise nodes whose files were written by other editors would not meet.
TEST_F(JobSecret, FileOfWindows_HasTheSameSecret) {
  EXPECT_EQ(read_secret(file(std::string("\xEF\xBB\xBF") + kSecret + "\r\n", 0600)), kSecret);
  std::string wide = "\xFF\xFE";
  for (const char c : std::string(kSecret)) wide += std::string{c, '\0'};
  EXPECT_THAT(message_of([&] { read_secret(file(wide, 0600)); }), HasSubstr("UTF-16"));
}

TEST_F(JobSecret, TooShort_IsRefusedWithoutRepeatingIt) {
  const std::string message = message_of([&] { read_secret(file("hunter2", 0600)); });
  EXPECT_THAT(message, HasSubstr("16 to 4096 characters, not 7"));
  EXPECT_EQ(message.find("hunter2"), std::string::npos) << message;
}

}  // namespace
}  // namespace fleet
