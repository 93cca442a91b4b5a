#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace fleet {
namespace {

using Kind = PipelineAction::Kind;

std::string text(const std::vector<PipelineAction>& actions) {
  std::string text;
  for (const PipelineAction& action : actions) {
    text += (text.empty() ? "" : " ") + std::string(1, "FBE"[action.kind]) +
            std::to_string(action.micro_batch);
  }
  return text;
}

std::string of(PipelineSchedule schedule, int stage) {
  return text(training_actions(schedule, 4, stage, 5));
}

TEST(PipelineSchedule, OneForwardOneBackward_StartsWithTheStagesThatFollow) {
  constexpr auto kSchedule = PipelineSchedule::kOneForwardOneBackward;
  EXPECT_EQ(of(kSchedule, 0), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
  EXPECT_EQ(of(kSchedule, 1), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(of(kSchedule, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(PipelineSchedule, EagerOneForwardOneBackward_StartsWithTwiceTheStagesThatFollow) {
  constexpr auto kSchedule = PipelineSchedule::kEagerOneForwardOneBackward;
  EXPECT_EQ(of(kSchedule, 1), "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
  EXPECT_EQ(of(kSchedule, 2), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(of(kSchedule, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(PipelineSchedule, ForwardThenBackward_IsTheSameOnAllStages) {
  for (const int stage : {0, 3}) {
    EXPECT_EQ(of(PipelineSchedule::kForwardThenBackward, stage), "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
  }
}

TEST(PipelineSchedule, FewerMicroBatchesThanStages_AllAreComputedOnce) {
  const auto actions = training_actions(PipelineSchedule::kOneForwardOneBackward, 4, 0, 2);
  EXPECT_EQ(text(actions), "F0 F1 B0 B1");
}

TEST(PipelineSchedule, Evaluation_IsInOrder) { EXPECT_EQ(text(evaluation_actions(3)), "E0 E1 E2"); }

// Each action takes one unit of time once its message has come: all stages together take
// m + p - 1 units for forward and for backward, as the formula of the bubble says.
TEST(PipelineSchedule, FourStages_WaitAsLongAsTheFormulaSays) {
  constexpr int kStages = 4, kMicroBatches = 12;
  for (const auto schedule :
       {PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kEagerOneForwardOneBackward,
        PipelineSchedule::kForwardThenBackward}) {
    std::vector<std::vector<PipelineAction>> all;
    for (int stage = 0; stage < kStages; ++stage) {
      all.push_back(training_actions(schedule, kStages, stage, kMicroBatches));
    }
    std::map<std::pair<int, std::pair<int, int>>, int> ended;  // stage, kind, micro-batch
    std::vector<size_t> next(kStages, 0);
    std::vector<int> now(kStages, 0);
    const size_t actions = 2 * kMicroBatches;
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < kStages; ++stage) {
        while (next[stage] < actions) {
          const PipelineAction action = all[stage][next[stage]];
          const int from = stage + (action.kind == Kind::kForward ? -1 : 1);
          int begin = now[stage];
          if (from >= 0 && from < kStages) {
            const auto message = ended.find({from, {action.kind, action.micro_batch}});
            if (message == ended.end()) break;
            begin = std::max(begin, message->second);
          }
          now[stage] = begin + 1;
          ended[{stage, {action.kind, action.micro_batch}}] = now[stage];
          ++next[stage];
          moved = true;
        }
      }
    }
    for (const size_t done : next) EXPECT_EQ(done, actions) << "a stage waits for ever";
    EXPECT_EQ(*std::max_element(now.begin(), now.end()), 2 * (kMicroBatches + kStages - 1));
  }
}

}  // namespace
}  // namespace fleet
