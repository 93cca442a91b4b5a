#include "base/program_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/env.h"

namespace fleet {
namespace {

struct ProgramFile : ::testing::Test {
  ProgramFile() {
    std::filesystem::create_directories(folder + "/first/tool");  // a folder of that name
    std::filesystem::create_directories(folder + "/second");
    std::ofstream(folder + "/second/tool") << "#!/bin/sh\n";
    std::ofstream(folder + "/second/text") << "not a program\n";
    ::chmod((folder + "/second/tool").c_str(), 0755);
  }
  ~ProgramFile() override {
    ::setenv("PATH", path.c_str(), 1);
    std::filesystem::current_path(before);
    std::filesystem::remove_all(folder);
  }

  const std::string folder = ::testing::TempDir() + "/program_file." + std::to_string(::getpid());
  const std::string path = env_or("PATH", "");
  const std::filesystem::path before = std::filesystem::current_path();
};

TEST_F(ProgramFile, IsExecutable_OnlyAProgram) {
  EXPECT_TRUE(is_executable(folder + "/second/tool"));
  EXPECT_FALSE(is_executable(folder + "/second/text"));
  EXPECT_FALSE(is_executable(folder + "/first/tool"));
  EXPECT_FALSE(is_executable(folder + "/none"));
}

TEST_F(ProgramFile, FindOnPath_TheFirstProgramOfThatName) {
  ::setenv("PATH", (folder + "/first:" + folder + "/second:/bin").c_str(), 1);
  EXPECT_EQ(find_on_path("tool"), folder + "/second/tool");
  EXPECT_EQ(find_on_path("sh"), "/bin/sh");
  EXPECT_EQ(find_on_path("text"), "");
}

TEST_F(ProgramFile, FindOnPath_AnEmptyFolderIsTheCurrentOne) {
  std::filesystem::current_path(folder + "/second");
  ::setenv("PATH", "/bin", 1);
  EXPECT_EQ(find_on_path("tool"), "");
  ::setenv("PATH", "/bin:", 1);
  EXPECT_EQ(find_on_path("tool"), "./tool");
}

}  // namespace
}  // namespace fleet
