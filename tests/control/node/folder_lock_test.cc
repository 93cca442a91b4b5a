#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

#include "node/log_file.h"

namespace fleet {
namespace {

class FolderClaimTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/fleet_claim_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(FolderClaimTest, Second_NamesTheFirst) {
  const FolderLock first(folder_, "node 0 of job 'a'");
  EXPECT_EQ(first.holder(), "");
  const FolderLock second(folder_, "node 1 of job 'a'"), third(folder_, "node 2 of job 'a'");
  EXPECT_EQ(second.holder(), "node 0 of job 'a'");
  EXPECT_EQ(third.holder(), "node 0 of job 'a'");
}

TEST_F(FolderClaimTest, AfterTheFirst_ItIsFreeAndEmpty) {
  std::optional<FolderLock> first(std::in_place, folder_, "a longer name than the next one's");
  first.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  first.emplace(folder_, "b");
  EXPECT_EQ(first->holder(), "");
  EXPECT_EQ(FolderLock(folder_, "c").holder(), "b");
}

TEST_F(FolderClaimTest, FolderThatIsNotThere_TellsNothing) {
  EXPECT_EQ(FolderLock(folder_ + "/none", "a").holder(), "");
}

}  // namespace
}  // namespace fleet
