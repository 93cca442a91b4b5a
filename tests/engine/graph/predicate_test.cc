#include "graph/predicate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace fleet {
namespace {

// Training steps below 40 in which it holds.
std::vector<int64_t> steps_of(const Predicate& predicate, uint64_t flags = 0) {
  std::vector<int64_t> steps;
  for (int64_t step = 0; step < 40; ++step) {
    if (predicate.holds({.step = step, .flags = flags})) steps.push_back(step);
  }
  return steps;
}

TEST(Predicate, UntilStep_EndsBeforeIt) {
  EXPECT_EQ(steps_of({.from_step = 3, .until_step = 6}), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(steps_of({.from_step = 6, .until_step = 6}), std::vector<int64_t>{});
}

TEST(Predicate, Between_IsWhatEveryLeavesOut) {
  EXPECT_EQ(steps_of({.every = 4, .until_step = 9}), (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(steps_of({.every = 4, .between = true, .until_step = 9}),
            (std::vector<int64_t>{0, 1, 2, 4, 5, 6, 8}));
  EXPECT_EQ(steps_of({.every = 1, .between = true}), std::vector<int64_t>{});
}

TEST(Predicate, Flag_IsLookedAtInTrainingOnly) {
  const Predicate set{.evaluation = true, .flag = 2};
  const Predicate cleared{.evaluation = true, .flag = 2, .flag_value = false};
  EXPECT_TRUE(set.holds({.flags = 0b100}));
  EXPECT_FALSE(set.holds({.flags = 0b011}));
  EXPECT_FALSE(cleared.holds({.flags = 0b100}));
  EXPECT_TRUE(cleared.holds({.flags = 0b011}));
  EXPECT_TRUE(set.holds({.evaluate = true}));
  EXPECT_TRUE(cleared.holds({.evaluate = true, .flags = 0b100}));
  EXPECT_TRUE((Predicate{.flag = 63}.holds({.flags = uint64_t{1} << 63})));
}

TEST(Predicate, SyncAndRefresh_AreRunsOfTheirOwn) {
  const Predicate everything{.training = true, .evaluation = true};
  const Predicate sync{.training = false, .sync = true};
  const Predicate both{.sync = true, .every = 5};
  const Predicate refresh{.training = false, .refresh = true};
  EXPECT_FALSE(everything.holds({.sync = true}));
  EXPECT_FALSE(everything.holds({.refresh = true}));
  EXPECT_TRUE(sync.holds({.sync = true}));
  EXPECT_FALSE(sync.holds({}));
  EXPECT_FALSE(sync.holds({.evaluate = true}));
  EXPECT_FALSE(sync.holds({.refresh = true}));
  EXPECT_TRUE(both.holds({.step = 0, .sync = true}));  // its steps are of training only
  EXPECT_FALSE(both.holds({.step = 0}));
  EXPECT_TRUE(refresh.holds({.refresh = true}));
  EXPECT_FALSE(refresh.holds({.sync = true}));
  EXPECT_FALSE(refresh.holds({}));
}

TEST(Predicate, Covers_OneByOne) {
  EXPECT_TRUE((Predicate{.every = 2}.covers({.every = 6})));
  EXPECT_FALSE((Predicate{.every = 6}.covers({.every = 2})));
  EXPECT_TRUE((Predicate{.from_step = 3}.covers({.from_step = 4, .until_step = 9})));
  EXPECT_FALSE((Predicate{.from_step = 3, .until_step = 8}.covers({.from_step = 4})));
  EXPECT_FALSE((Predicate{.fetch_only = true}.covers({})));
  EXPECT_TRUE((Predicate{}.covers({.fetch_only = true})));
  EXPECT_FALSE((Predicate{}.covers({.sync = true})));
  EXPECT_FALSE((Predicate{}.covers({.evaluation = true})));
  EXPECT_FALSE((Predicate{.flag = 0}.covers({})));
  EXPECT_TRUE((Predicate{}.covers({.flag = 0})));
  EXPECT_FALSE((Predicate{.flag = 1}.covers({.flag = 0})));
  // Every other step holds all that are left of these.
  EXPECT_TRUE((Predicate{.every = 2}.covers({.every = 3, .from_step = 3, .until_step = 6})));
}

TEST(Predicate, Cover_BySeveralTogether) {
  const Predicate every[] = {{.every = 5}, {.every = 5, .between = true}};
  EXPECT_TRUE(cover(every, {}));
  EXPECT_FALSE(cover(every, {.sync = true}));
  const Predicate ramp[] = {
      {.until_step = 10}, {.from_step = 10, .until_step = 20}, {.from_step = 20}};
  EXPECT_TRUE(cover(ramp, {}));
  EXPECT_FALSE(cover(std::span(ramp).first(2), {}));
  EXPECT_TRUE(cover(std::span(ramp).first(2), {.until_step = 20}));
  const Predicate gap[] = {{.until_step = 10}, {.from_step = 11}};
  EXPECT_FALSE(cover(gap, {}));
  EXPECT_TRUE(cover(gap, {.every = 2}));  // step 10 is none of them
  const Predicate flags[] = {{.flag = 3}, {.flag = 3, .flag_value = false}};
  EXPECT_TRUE(cover(flags, {}));
  const Predicate other_flags[] = {{.flag = 3}, {.flag = 4, .flag_value = false}};
  EXPECT_FALSE(cover(other_flags, {}));
  EXPECT_FALSE(cover({}, {}));
}

TEST(Predicate, Exclude_NeverInOneRun) {
  EXPECT_TRUE(exclude({.every = 5}, {.every = 5, .between = true}));
  EXPECT_FALSE(exclude({.every = 5}, {.every = 3, .between = true}));
  EXPECT_TRUE(exclude({.every = 6}, {.every = 3, .between = true}));
  EXPECT_TRUE(exclude({.until_step = 7}, {.from_step = 7}));
  EXPECT_FALSE(exclude({.until_step = 8}, {.from_step = 7}));
  EXPECT_TRUE(exclude({.flag = 0}, {.flag = 0, .flag_value = false}));
  EXPECT_FALSE(exclude({.flag = 0}, {.flag = 1, .flag_value = false}));
  EXPECT_TRUE(exclude({}, {.training = false, .sync = true}));
  EXPECT_FALSE(exclude({.sync = true, .every = 5}, {.sync = true, .every = 5, .between = true}));
  EXPECT_TRUE(exclude({}, {.training = false, .evaluation = true}));
  EXPECT_TRUE(exclude({.refresh = true}, {}));
}

// Periods whose steps meet after more than a day of training.
TEST(Predicate, LongPeriods_AreExact) {
  const int64_t a = 99991, b = 99989, c = 1000003;  // primes
  EXPECT_FALSE(exclude({.every = a}, {.every = b}));
  EXPECT_TRUE(exclude({.every = a, .until_step = a * b - 1}, {.every = b}));
  EXPECT_FALSE(exclude({.every = a, .until_step = a * b}, {.every = b}));
  const Predicate three[] = {
      {.every = a, .between = true}, {.every = b, .between = true}, {.every = c, .between = true}};
  EXPECT_FALSE(cover(three, {}));  // step a b c - 1
  EXPECT_TRUE(cover(three, {.until_step = a * b * c - 1}));
  EXPECT_FALSE(cover(three, {.until_step = a * b * c}));
  const Predicate far[] = {{.every = kForever, .between = true}, {.every = kForever - 1}};
  EXPECT_FALSE(cover(far, {}));
}

// Against trying all steps and flags.
TEST(Predicate, CoverAndExclude_MatchExhaustiveSearch) {
  std::mt19937 random(7);
  const auto pick = [&](int below) { return static_cast<int>(random() % below); };
  const auto any = [&] {
    return Predicate{.training = pick(5) > 0,
                     .evaluation = pick(4) == 0,
                     .fetch_only = pick(5) == 0,
                     .refresh = pick(12) == 0,
                     .sync = pick(4) == 0,
                     .every = pick(2) ? 1 : 1 + pick(6),
                     .between = pick(4) == 0,
                     .from_step = pick(2) ? 0 : pick(12),
                     .until_step = pick(2) ? kForever : pick(30),
                     .flag = pick(2) ? kNoFlag : pick(2),
                     .flag_value = pick(2) == 0};
  };
  std::vector<StepInfo> runs = {{.refresh = true}, {.sync = true}};
  for (const bool fetch : {false, true}) {
    runs.push_back({.evaluate = true, .fetch = fetch});
    for (int64_t step = 0; step < 100; ++step) {  // 30, and a common period of 1 to 6
      for (uint64_t flags = 0; flags < 4; ++flags) {
        runs.push_back({.step = step, .fetch = fetch, .flags = flags});
      }
    }
  }
  int covered = 0, excluded = 0;
  for (int round = 0; round < 3000; ++round) {
    const Predicate some[] = {any(), any(), any()};
    const Predicate other = any();
    const auto some_holds = [&](const StepInfo& info) {
      return std::any_of(std::begin(some), std::end(some),
                         [&](const Predicate& p) { return p.holds(info); });
    };
    const bool covers = std::all_of(runs.begin(), runs.end(), [&](const StepInfo& info) {
      return !other.holds(info) || some_holds(info);
    });
    const bool excludes = std::none_of(runs.begin(), runs.end(), [&](const StepInfo& info) {
      return other.holds(info) && some[0].holds(info);
    });
    ASSERT_EQ(cover(some, other), covers) << some[0].text() << " | " << some[1].text() << " | "
                                          << some[2].text() << " > " << other.text();
    ASSERT_EQ(exclude(some[0], other), excludes) << some[0].text() << " / " << other.text();
    // Layouts are copied once for all readers of a text.
    if (some[0].text() == other.text()) {
      ASSERT_TRUE(some[0].covers(other) && other.covers(some[0])) << other.text();
    }
    covered += covers;
    excluded += excludes;
  }
  EXPECT_GT(covered, 100);
  EXPECT_GT(excluded, 100);
}

TEST(Predicate, Text_SaysWhen) {
  EXPECT_EQ(Predicate{}.text(), "training");
  EXPECT_EQ((Predicate{.evaluation = true, .sync = true}.text()), "always and sync");
  EXPECT_EQ((Predicate{.training = false, .evaluation = true}.text()), "evaluation");
  EXPECT_EQ((Predicate{.training = false, .sync = true}.text()), "sync");
  EXPECT_EQ((Predicate{.training = false}.text()), "never");
  EXPECT_EQ((Predicate{.between = true}.text()), "never");
  EXPECT_EQ((Predicate{.from_step = 5, .until_step = 5}.text()), "never");
  EXPECT_EQ((Predicate{.refresh = true}.text()), "refresh");
  EXPECT_EQ((Predicate{.fetch_only = true, .every = 3, .from_step = 4, .until_step = 9}.text()),
            "training, every 3 steps, from step 4, before step 9, when fetching");
  EXPECT_EQ((Predicate{.every = 3, .between = true, .flag = 1}.text()),
            "training, except every 3 steps, with flag 1");
  EXPECT_EQ((Predicate{.flag = 0, .flag_value = false}.text()), "training, without flag 0");
}

}  // namespace
}  // namespace fleet
