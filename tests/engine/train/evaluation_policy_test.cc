#include "train/evaluation_policy.h"

#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

// Epochs of four batches.
class EvaluationPolicyTest : public TrainerTest {
 protected:
  EvaluationPolicy policy(const std::vector<std::string>& keys, bool has_data = true) const {
    return {job(keys), has_data, 4};
  }
  // After `step` steps; at the end of an epoch as the step leaves it, or when the epoch has ended.
  static TrainingPosition after(int64_t step) {
    return {.step = step, .epoch = (step - 1) / 4, .batch = (step - 1) % 4 + 1};
  }
  static TrainingPosition between(int64_t epochs) { return {.step = 4 * epochs, .epoch = epochs}; }
};

TEST_F(EvaluationPolicyTest, EndOfAnEpoch_IsEvaluatedOnce) {
  const EvaluationPolicy both = policy({"train.evaluate_every=1", "train.evaluate_every_steps=2"});
  EXPECT_TRUE(both.due_after_step(after(2)));
  EXPECT_FALSE(both.due_after_step(after(3)));
  EXPECT_FALSE(both.due_after_step(after(4)));
  EXPECT_TRUE(both.due_after_epoch(1));
  const EvaluationPolicy rarely =
      policy({"train.evaluate_every=2", "train.evaluate_every_steps=2"});
  EXPECT_TRUE(rarely.due_after_step(after(4)));
  EXPECT_FALSE(rarely.due_after_epoch(1));
  EXPECT_FALSE(rarely.due_after_step(after(8)));
}

TEST_F(EvaluationPolicyTest, WithoutData_NothingIsDueWithinAnEpoch) {
  const EvaluationPolicy none = policy({"train.evaluate_every_steps=1"}, false);
  EXPECT_FALSE(none.evaluates());
  EXPECT_FALSE(none.due_after_step(after(1)));
  EXPECT_FALSE(policy({"train.evaluate_every=0"}).evaluates());
  EXPECT_TRUE(policy({"train.evaluate_every=0", "train.evaluate_every_steps=1"}).evaluates());
}

TEST_F(EvaluationPolicyTest, EvaluationsOfAnUninterruptedRun_Count) {
  const EvaluationPolicy epochs =
      policy({"train.evaluate_every=1", "train.evaluate_every_steps=2"});
  EXPECT_FALSE(epochs.counts(after(2)));
  EXPECT_TRUE(epochs.counts(between(1)));
  const EvaluationPolicy steps = policy({"train.evaluate_every=0", "train.evaluate_every_steps=2"});
  EXPECT_TRUE(steps.counts(after(2)));
  EXPECT_FALSE(steps.counts(after(3)));
}

TEST_F(EvaluationPolicyTest, Epoch_IsTheLastTrained) {
  EXPECT_EQ(EvaluationPolicy::epoch_of(between(2)), 1);
  EXPECT_EQ(EvaluationPolicy::epoch_of(after(9)), 2);
  EXPECT_EQ(EvaluationPolicy::epoch_of({}), 0);
}

TEST_F(EvaluationPolicyTest, EvaluationAfterACheckpoint_IsMissed) {
  const EvaluationPolicy epochs = policy({"train.evaluate_every=1"});
  EXPECT_EQ(epochs.missed(between(2), 4, std::nullopt), 1);
  EXPECT_EQ(epochs.missed(between(2), std::nullopt, 4), 1);
  EXPECT_EQ(epochs.missed(between(2), 8, 8), std::nullopt);
  EXPECT_EQ(epochs.missed(between(2), std::nullopt, std::nullopt), std::nullopt);
  EXPECT_EQ(epochs.missed(after(6), 4, 4), std::nullopt);
  EXPECT_EQ(epochs.missed({}, -1, -1), std::nullopt);
  const EvaluationPolicy steps = policy({"train.evaluate_every=0", "train.evaluate_every_steps=3"});
  EXPECT_EQ(steps.missed(after(6), std::nullopt, 3), 1);
  EXPECT_EQ(steps.missed(after(7), std::nullopt, 6), std::nullopt);
}

}  // namespace
}  // namespace fleet
