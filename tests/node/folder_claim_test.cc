#include "node/folder_claim.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

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

TEST_F(FolderClaimTest, Second_IsToldOfTheFirst) {
  const FolderClaim first(folder_, "node 0 of job 'a'");
  EXPECT_EQ(first.other(), "");
  const FolderClaim second(folder_, "node 1 of job 'a'"), third(folder_, "node 2 of job 'a'");
  EXPECT_EQ(second.other(), "node 0 of job 'a'");
  EXPECT_EQ(third.other(), "node 0 of job 'a'");
}

TEST_F(FolderClaimTest, AfterTheFirst_ItIsFreeAndEmpty) {
  std::optional<FolderClaim> first(std::in_place, folder_, "a longer name than the next one's");
  first.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  first.emplace(folder_, "b");
  EXPECT_EQ(first->other(), "");
  EXPECT_EQ(FolderClaim(folder_, "c").other(), "b");
}

TEST_F(FolderClaimTest, FolderThatIsNotThere_TellsNothing) {
  EXPECT_EQ(FolderClaim(folder_ + "/none", "a").other(), "");
}

}  // namespace
}  // namespace fleet
