// Checkpoints that need another one beside them, as those with changes of tables do.
#include <gmock/gmock.h>

#include <filesystem>

#include "tensor/host.h"
#include "tests/errors.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

class NeededCheckpoints : public ::testing::Test {
 protected:
  NeededCheckpoints() {
    fs::remove_all(root_);
    Program program;
    program.add_section("forward", {});
    program.parameter("w", {2}, {Init::kUniform, -1, 1});
    executor_ = std::make_unique<Executor>(plan_program(std::move(program), {}), device_, nullptr);
    executor_->initialize(1);
  }
  ~NeededCheckpoints() override { fs::remove_all(root_); }

  // needs: the step of another checkpoint; -1: none.
  void save(int64_t step, int64_t needs, const Keep& keep) {
    CheckpointValues values = values_of(*executor_, {}, false);
    values.more = [&](const std::string&) {
      return needs < 0 ? std::string() : folder_of_step(root_, needs);
    };
    RankCoordinator alone(nullptr);
    save_on_all_ranks(root_, {.step = step, .model = "m"}, values, keep, {}, alone);
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> all;
    for (const auto& entry : fs::directory_iterator(root_)) {
      all.push_back(step_of_checkpoint(entry.path()));
    }
    std::ranges::sort(all);
    return all;
  }

  HostDevice device_;
  const std::string root_ = ::testing::TempDir() + "/needed_checkpoints";
  std::unique_ptr<Executor> executor_;
};

TEST_F(NeededCheckpoints, Base_StaysWhileAKeptOneNeedsIt) {
  const Keep keep{.newest = 1};
  save(1, -1, keep);
  save(2, 1, keep);
  EXPECT_THAT(steps(), ::testing::ElementsAre(1, 2));
  save(3, 1, keep);
  EXPECT_THAT(steps(), ::testing::ElementsAre(1, 3));
  save(4, -1, keep);
  EXPECT_THAT(steps(), ::testing::ElementsAre(4));
}

TEST_F(NeededCheckpoints, BaseOfTheBest_Stays) {
  save(1, -1, {.newest = 1});
  save(2, 1, {.newest = 1, .also_step = 2});
  for (const int64_t step : {3, 4}) save(step, -1, {.newest = 1, .also_step = 2});
  EXPECT_THAT(steps(), ::testing::ElementsAre(1, 2, 4));
}

TEST_F(NeededCheckpoints, MissingBase_IsDamageAndAnOlderOneIsTaken) {
  save(1, -1, {});
  save(2, -1, {});
  save(3, 2, {});
  fs::remove_all(folder_of_step(root_, 2));
  EXPECT_THROW(load_checkpoint(folder_of_step(root_, 3), "m", *executor_), DamagedFile);
  EXPECT_EQ(newest_complete_checkpoint(root_), folder_of_step(root_, 1));
}

}  // namespace
}  // namespace fleet
