#include "train/unfinished_checkpoints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

TEST(UnfinishedCheckpoints, AreRemoved_WholeOnesStay) {
  const std::string root = fs::temp_directory_path() / ("fleet-part-" + std::to_string(::getpid()));
  fs::create_directories(root + "/step_00000100");
  fs::create_directories(root + "/step_00000200.part/tables");
  write_file_atomically(root + "/step_00000200.part/tables/shards-000-024.rows", "half");
  remove_unfinished_checkpoints(root);
  EXPECT_FALSE(fs::exists(root + "/step_00000200.part"));
  EXPECT_TRUE(fs::exists(root + "/step_00000100"));
  fs::remove_all(root);
  remove_unfinished_checkpoints(root);  // there is nothing
}

}  // namespace
}  // namespace fleet
