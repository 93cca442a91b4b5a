#include "base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace fleet {
namespace {

class EnvOrFile : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    ::unsetenv("FLEET_TEST_LIST");
    ::unsetenv("FLEET_TEST_LIST_FILE");
  }
};

TEST_F(EnvOrFile, NothingIsSet_IsNothing) {
  EXPECT_EQ(get_env_or_file("FLEET_TEST_LIST"), std::nullopt);
}

TEST_F(EnvOrFile, File_IsRead) {
  const std::string path = ::testing::TempDir() + "/env_or_file";
  std::ofstream(path) << "a,b";
  ::setenv("FLEET_TEST_LIST_FILE", path.c_str(), 1);
  EXPECT_EQ(get_env_or_file("FLEET_TEST_LIST"), "a,b");
  ::setenv("FLEET_TEST_LIST", "c", 1);
  EXPECT_EQ(get_env_or_file("FLEET_TEST_LIST"), "c");
}

// As an editor of Windows saves it.
TEST_F(EnvOrFile, MarkOfUtf8_IsNoPartOfTheValue) {
  const std::string path = ::testing::TempDir() + "/env_or_file_mark";
  std::ofstream(path) << "\xEF\xBB\xBF"
                      << "a,b";
  ::setenv("FLEET_TEST_LIST_FILE", path.c_str(), 1);
  EXPECT_EQ(get_env_or_file("FLEET_TEST_LIST"), "a,b");
}

TEST_F(EnvOrFile, FileThatIsNotThere_IsAnError) {
  ::setenv("FLEET_TEST_LIST_FILE", "/nonexistent/list", 1);
  EXPECT_THROW(get_env_or_file("FLEET_TEST_LIST"), Error);
}

}  // namespace
}  // namespace fleet
