#include "rendezvous/restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using Next = Restarts::Next;

GenerationResult end_of(int generation, std::chrono::milliseconds ran_for,
                        std::optional<int64_t> step = {},
                        Verdict::Kind kind = Verdict::RANK_FAILED) {
  GenerationResult end;
  end.set_generation(generation);
  end.set_nnodes(2);
  end.set_world_size(4);
  end.set_kind(kind);
  end.set_message("rank 1 failed");
  end.set_ran_for_ms(ran_for.count());
  if (step) end.set_step(*step);
  return end;
}

TEST(Restarts, AsOftenAsAllowed) {
  Restarts restarts({.max_restarts = 2});
  EXPECT_EQ(restarts.on_generation_end(end_of(1, 1h)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(2, 1h)), Next::kRestart);
  EXPECT_EQ(restarts.used(), 2);
  EXPECT_EQ(restarts.on_generation_end(end_of(3, 1h)), Next::kFail);
  EXPECT_EQ(restarts.used(), 2);
  EXPECT_EQ(restarts.history().size(), 3u);
}

TEST(Restarts, Replacements_CountTogetherWithRestarts) {
  Restarts restarts({.max_restarts = 2, .max_replacements = 2});
  EXPECT_TRUE(restarts.replace());
  EXPECT_EQ(restarts.on_generation_end(end_of(1, 1h)), Next::kRestart);
  EXPECT_FALSE(restarts.replace());
  EXPECT_EQ(restarts.on_generation_end(end_of(2, 1h)), Next::kFail);
  EXPECT_EQ(restarts.counted(), 2);
  EXPECT_EQ(restarts.used(), 1);
}

TEST(Restarts, ReplacementsWithoutRestarts_AreAllowed) {
  Restarts restarts({.max_restarts = 0, .max_replacements = 1});
  EXPECT_TRUE(restarts.replace());
  EXPECT_FALSE(restarts.replace());
  EXPECT_EQ(restarts.on_generation_end(end_of(1, 1h)), Next::kFail);
}

TEST(Restarts, Resized_IsNotCounted) {
  Restarts restarts({.max_restarts = 1});
  EXPECT_EQ(restarts.on_generation_end(end_of(1, 1s, {}, Verdict::RESIZED)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(2, 1s, {}, Verdict::RESIZED)), Next::kRestart);
  EXPECT_EQ(restarts.used(), 0);
  EXPECT_EQ(restarts.on_generation_end(end_of(3, 1s)), Next::kRestart);
}

TEST(Restarts, ShortGenerationsWithoutSteps_AreNoProgress) {
  Restarts restarts({.max_restarts = 100, .no_progress_restarts = 3});
  for (int generation = 1; generation <= 3; ++generation) {
    EXPECT_EQ(restarts.on_generation_end(end_of(generation, 1s)), Next::kRestart) << generation;
  }
  EXPECT_EQ(restarts.on_generation_end(end_of(4, 1s)), Next::kNoProgress);
  EXPECT_EQ(restarts.restarts_without_progress(), 3);
}

TEST(Restarts, LongGenerationBetween_CountsAnew) {
  Restarts restarts({.max_restarts = 100, .no_progress_restarts = 2});
  EXPECT_EQ(restarts.on_generation_end(end_of(1, 1s)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(2, 1s)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(3, kProgressTime)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(4, 1s)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(5, 1s)), Next::kNoProgress);
}

TEST(Restarts, StepsCountRatherThanTime) {
  Restarts restarts({.max_restarts = 100, .no_progress_restarts = 2});
  EXPECT_EQ(restarts.on_generation_end(end_of(1, 1s, 100)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(2, 1h, 100)),
            Next::kRestart);  // resumed and came as far again
  EXPECT_EQ(restarts.on_generation_end(end_of(3, 1s, 101)), Next::kRestart);  // further
  EXPECT_EQ(restarts.on_generation_end(end_of(4, 1h, 50)), Next::kRestart);
  EXPECT_EQ(restarts.on_generation_end(end_of(5, 1h)), Next::kNoProgress);  // not even one step
}

TEST(Restarts, NoLimitOfProgress_OnlyTheNumberEndsIt) {
  Restarts restarts({.max_restarts = 20, .no_progress_restarts = 0});
  for (int generation = 1; generation <= 20; ++generation) {
    EXPECT_EQ(restarts.on_generation_end(end_of(generation, 0s)), Next::kRestart);
  }
  EXPECT_EQ(restarts.on_generation_end(end_of(21, 0s)), Next::kFail);
}

TEST(Restarts, TakenOver_GoesOnCounting) {
  const RestartPolicy policy{.max_restarts = 5, .no_progress_restarts = 2};
  Restarts restarts(policy, 2, {end_of(1, 1s), end_of(2, 1s)});
  EXPECT_EQ(restarts.used(), 2);
  EXPECT_EQ(restarts.restarts_without_progress(), 1);
  EXPECT_EQ(restarts.on_generation_end(end_of(3, 1s)), Next::kNoProgress);
}

TEST(Restarts, History_KeepsTheNewest) {
  Restarts restarts({.max_restarts = 1000, .no_progress_restarts = 0});
  for (int generation = 1; generation <= 150; ++generation)
    restarts.on_generation_end(end_of(generation, 0s, generation));
  EXPECT_EQ(restarts.history().size(), 100u);
  EXPECT_EQ(restarts.history().back().generation(), 150);
  const std::string text = history_text(restarts.history());
  EXPECT_THAT(text,
              testing::HasSubstr("generation 150 (2 nodes, 4 ranks): rank 1 failed; step 150"));
  EXPECT_THAT(text, testing::HasSubstr("(90 earlier generations)"));
}

}  // namespace
}  // namespace fleet
