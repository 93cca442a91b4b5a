#include "train/checkpoint_policy.h"

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

class CheckpointPolicyTest : public TrainerTest {
 protected:
  CheckpointPolicy policy(const std::vector<std::string>& keys = {}) const {
    return CheckpointPolicy(job(keys));
  }
  const BestValue none_{"loss"}, best_of_4_{"loss", 0.5, 4}, best_of_8_{"loss", 0.25, 8};
};

TEST_F(CheckpointPolicyTest, Job_SaysWhenToSave) {
  const CheckpointPolicy often =
      policy({"checkpoint.every_steps=3", "checkpoint.every_epochs=2", "checkpoint.at_end=false"});
  EXPECT_TRUE(often.saves());
  EXPECT_TRUE(often.due_after_step(6));
  EXPECT_FALSE(often.due_after_step(7));
  EXPECT_TRUE(often.due_after_epoch(4));
  EXPECT_FALSE(often.due_after_epoch(5));
  EXPECT_FALSE(often.due_at_end());
  EXPECT_TRUE(policy().due_at_end());
  const CheckpointPolicy never =
      policy({"checkpoint.every_steps=0", "checkpoint.every_epochs=0", "checkpoint.at_end=false"});
  EXPECT_FALSE(never.saves());
}

TEST_F(CheckpointPolicyTest, Save_KeepsTheNewestAndTheBest) {
  CheckpointPolicy policy = this->policy({"checkpoint.keep=2"});
  EXPECT_FALSE(policy.is_saved(4, best_of_4_));
  const Keep keep = policy.begin(4, best_of_4_);
  EXPECT_EQ(keep.newest, 2);
  EXPECT_EQ(keep.also_step, 4);
  EXPECT_TRUE(policy.saving());
  EXPECT_EQ(policy.end(false, best_of_4_), best_of_4_);
  EXPECT_FALSE(policy.saving());
  EXPECT_TRUE(policy.is_saved(4, best_of_4_));
  EXPECT_EQ(policy.saved_step(), 4);
}

TEST_F(CheckpointPolicyTest, FailedSave_IsRetriedAndTheBestIsTheOneOnTheDisk) {
  CheckpointPolicy policy = this->policy({"checkpoint.at_end=false"});
  policy.begin(4, best_of_4_);
  policy.end(false, best_of_4_);
  policy.begin(8, best_of_8_);
  EXPECT_EQ(policy.end(true, best_of_8_), best_of_4_);
  EXPECT_TRUE(policy.failed());
  EXPECT_TRUE(policy.due_at_end());
  EXPECT_EQ(policy.saved_step(), 4);
  EXPECT_FALSE(policy.is_saved(8, best_of_8_));
  policy.begin(8, best_of_8_);
  policy.end(false, best_of_8_);
  EXPECT_FALSE(policy.due_at_end());
}

TEST_F(CheckpointPolicyTest, FailureOfAnotherStep_LeavesTheBest) {
  CheckpointPolicy policy = this->policy();
  policy.begin(4, best_of_4_);
  policy.end(false, best_of_4_);
  policy.begin(8, best_of_4_);
  EXPECT_EQ(policy.end(true, best_of_4_), best_of_4_);
}

TEST_F(CheckpointPolicyTest, SilentDisk_IsWaitedForOnce) {
  CheckpointPolicy policy = this->policy({"checkpoint.at_end=false"});
  policy.begin(4, none_);
  EXPECT_GT(policy.patience(), 0);
  policy.hang();
  EXPECT_EQ(policy.patience(), 0);
  EXPECT_TRUE(policy.saving());
  EXPECT_EQ(policy.skip(8, best_of_8_), BestValue());  // no checkpoint of it is on the disk
  EXPECT_TRUE(policy.due_at_end());
  policy.end(false, none_);
  EXPECT_GT(policy.patience(), 0);
  EXPECT_TRUE(policy.due_at_end()) << "the skipped step";
  policy.begin(12, none_);
  EXPECT_FALSE(policy.due_at_end());
}

TEST_F(CheckpointPolicyTest, StepEvaluatedAfterItsSave_IsTheBestOnTheDisk) {
  CheckpointPolicy policy = this->policy();
  policy.begin(4, none_);
  policy.end(false, none_);
  EXPECT_TRUE(policy.is_saved(4, best_of_4_));
  policy.begin(8, best_of_8_);
  EXPECT_EQ(policy.end(true, best_of_8_), best_of_4_);
}

}  // namespace
}  // namespace fleet
