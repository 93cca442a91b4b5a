#include "train/micro_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optim/schedule.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

using data::Tail;

// Three epochs of batches of 16 samples, each in so many parts.
std::string obstacle(int64_t samples, Tail tail, int64_t k,
                     const std::string& schedule = R"({"name": "constant"})") {
  ConfigTree tree = ConfigTree::from_json(schedule, "test");
  return micro_batch_obstacle({.samples = samples, .global_batch = 16, .tail = tail}, k,
                              tree.validate(schedule_schema(*tree.peek("name"))), 3);
}

// Else an update would take the last micro-batches of one epoch and the first ones of the next.
TEST(MicroBatches, OfAnEpoch_AreWholeBatches) {
  EXPECT_EQ(obstacle(64, Tail::kPad, 4), "");
  EXPECT_EQ(obstacle(57, Tail::kPad, 2), "");  // 4 batches, 8 parts
  EXPECT_THAT(obstacle(56, Tail::kPad, 2), HasSubstr("an epoch of 56 samples"));
  EXPECT_EQ(obstacle(71, Tail::kDrop, 2), "");
  EXPECT_NE(obstacle(72, Tail::kDrop, 2), "");
}

TEST(MicroBatches, RatesOfUpdates_AreThoseOfWholeBatches) {
  const auto by = [](const std::string& schedule) { return obstacle(64, Tail::kPad, 2, schedule); };
  for (const char* same :
       {R"({"name": "cosine", "per": "epoch"})", R"({"name": "exponential", "per": "epoch"})",
        R"({"name": "plateau"})", R"({"name": "step", "period": 1})",
        R"({"name": "piecewise", "boundaries": [1, 2], "values": [0.1, 0.01, 0.001]})"}) {
    EXPECT_EQ(by(same), "") << same;
  }
  for (const char* other : {R"({"name": "cosine"})", R"({"name": "exponential"})",
                            R"({"name": "constant", "warmup_epochs": 1})",
                            R"({"name": "cosine", "per": "epoch", "warmup_steps": 2})",
                            R"({"name": "step", "period": 3, "unit": "step"})"}) {
    EXPECT_THAT(by(other), HasSubstr("learning rate changes")) << other;
  }
}

}  // namespace
}  // namespace fleet
