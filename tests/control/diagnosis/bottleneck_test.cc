#include "diagnosis/bottleneck.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>
#include <utility>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using wire::Bottleneck;
using wire::Cause;

constexpr double kMs = 1e6;

// Actions that several tests expect.
const std::string kNoMoreCores =
    "the data threads use all cores: decode less (data.cache=decoded, or smaller images by "
    "fleetrun pack), or give each rank more cores";
const std::string kExchangeLess =
    "a larger data.batch_size, or strategy.gradient_merge, exchanges gradients less often";

// Ranks of a healthy job: 100 ms a step, of which little is lost.
std::vector<RankTimes> healthy(int ranks) {
  std::vector<RankTimes> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back({.rank = rank,
                   .local_rank = rank,
                   .step = 100 * kMs,
                   .input = 1 * kMs,
                   .exposed = 3 * kMs,
                   .exchange = 3 * kMs,
                   .delayed = 1 * kMs,
                   .making = 60 * kMs,
                   .reading = 5 * kMs,
                   .data_threads = 2,
                   .cores = 8});
  }
  return all;
}

Bottleneck found(const std::vector<RankTimes>& ranks, int nnodes = 1) {
  return find_bottleneck(ranks, nnodes).value();
}

TEST(FindBottleneck, NoRank_SaysNothing) { EXPECT_FALSE(find_bottleneck({}, 1)); }

TEST(FindBottleneck, HealthyJob_HasNone) {
  for (const int ranks : {1, 2, 8}) {
    const Bottleneck none = found(healthy(ranks));
    EXPECT_TRUE(none.causes().empty());
    EXPECT_NEAR(none.compute(), 0.95, 0.04);
  }
  EXPECT_THAT(found(healthy(1)).line(), HasSubstr("98 % of the step"));
}

TEST(FindBottleneck, LateBatches_AreInputWithTheThreadsThatWouldDo) {
  auto ranks = healthy(4);
  for (RankTimes& rank : ranks) {
    rank.input = 31 * kMs;
    rank.making = 198 * kMs;  // two threads that are always busy
  }
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::INPUT);
  EXPECT_NEAR(one.causes(0).share(), 0.31, 1e-9);
  EXPECT_EQ(one.causes(0).action(), "data.threads 2 -> 4 would hide 31 % of the step");
  EXPECT_EQ(one.line(),
            "bottleneck: input, 31 % of the step: data.threads 2 -> 4 would hide 31 % of the step");
}

TEST(FindBottleneck, TooFewCores_HidePartOfTheInput) {
  auto ranks = healthy(1);
  ranks[0].exposed.reset();
  ranks[0].input = 60 * kMs;
  ranks[0].making = 200 * kMs;
  ranks[0].cores = 3;
  // 200 / 3 = 66.7 ms a batch, of which 40 are hidden.
  EXPECT_EQ(found(ranks).causes(0).action(), "data.threads 2 -> 3 would hide 33 % of the step");
  ranks[0].cores = 2;
  EXPECT_EQ(found(ranks).causes(0).action(), kNoMoreCores);
}

TEST(FindBottleneck, SlowDisk_IsSaidToBeRead) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.input = 50 * kMs;
    rank.making = 190 * kMs;
    rank.reading = 170 * kMs;
  }
  EXPECT_THAT(found(ranks).causes(0).action(),
              AllOf(HasSubstr("89 % of their time reading"), HasSubstr("data.threads 2 -> 5")));
}

TEST(FindBottleneck, BatchesMadeByTheTrainingThread_AreToBeMadeBesideIt) {
  auto ranks = healthy(1);
  ranks[0].data_threads = 0;
  ranks[0].input = 40 * kMs;
  EXPECT_THAT(found(ranks).causes(0).action(),
              AllOf(HasSubstr("data.async"), HasSubstr("40 % of the step")));
}

// Keys of job files mean nothing to other programs.
TEST(FindBottleneck, OtherPrograms_GetNoAdviceForJobFiles) {
  auto late = healthy(2), exchanging = healthy(2), crowded = healthy(2);
  for (auto* ranks : {&late, &exchanging, &crowded}) {
    for (RankTimes& rank : *ranks) {
      rank.reported = true;
      rank.making = rank.reading = 0;
      rank.data_threads = 0;
    }
  }
  for (RankTimes& rank : late) rank.input = 40 * kMs;
  for (RankTimes& rank : exchanging) rank.exposed = rank.exchange = 40 * kMs;
  for (RankTimes& rank : crowded) rank.delayed = 40 * kMs;
  const std::pair<Bottleneck, Cause::Kind> all[] = {{found(late), Cause::INPUT},
                                                    {found(exchanging), Cause::COMMUNICATION},
                                                    {found(exchanging, 2), Cause::COMMUNICATION},
                                                    {found(crowded), Cause::HOST}};
  for (const auto& [bottleneck, kind] : all) {
    ASSERT_EQ(bottleneck.causes_size(), 1);
    EXPECT_EQ(bottleneck.causes(0).kind(), kind);
    EXPECT_THAT(bottleneck.line(), AllOf(Not(HasSubstr("data.")), Not(HasSubstr("strategy."))));
  }
}

TEST(FindBottleneck, SlowExchange_IsCommunication) {
  auto ranks = healthy(4);
  for (RankTimes& rank : ranks) rank.exposed = 45 * kMs;
  const Bottleneck one = found(ranks, 2);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::COMMUNICATION);
  EXPECT_NEAR(one.causes(0).share(), 0.45, 1e-9);
  EXPECT_THAT(one.causes(0).action(),
              AllOf(HasSubstr("strategy.fp16_allreduce"), HasSubstr("strategy.gradient_merge")));
}

TEST(FindBottleneck, RankThatTheOthersWaitFor_IsTheStraggler) {
  for (const int count : {2, 4, 16}) {
    auto ranks = healthy(count);
    for (RankTimes& rank : ranks) rank.exposed = 43 * kMs;
    ranks[1].exposed = 3 * kMs;
    const Bottleneck one = found(ranks);
    ASSERT_EQ(one.causes_size(), 1) << count;
    EXPECT_EQ(one.causes(0).kind(), Cause::STRAGGLER);
    EXPECT_EQ(one.causes(0).rank(), 1);
    EXPECT_NEAR(one.causes(0).share(), 0.40, 1e-9);
    EXPECT_EQ(
        one.line(),
        "bottleneck: straggler (rank 1), 40 % of the step: look at the clock rate, the memory "
        "and the cores of rank 1 (local rank 1) on node 0; fleetrun stacks");
  }
}

TEST(FindBottleneck, StragglersReason_IsInItsAction) {
  auto ranks = healthy(3);
  for (RankTimes& rank : ranks) rank.exposed = 43 * kMs;
  RankTimes& slow = ranks[2];
  slow.exposed = 3 * kMs;
  const std::string who = "rank 2 (local rank 2) on node 0";
  slow.delayed = 40 * kMs;
  EXPECT_EQ(found(ranks).causes(0).action(),
            who + " has no core for 40 % of its step: stop the other processes on its cores");
  slow.nice = 10;
  EXPECT_EQ(found(ranks).causes(0).action(),
            who +
                " has no core for 40 % of its step and runs with nice 10: renice it, or stop the "
                "other processes on its cores");
  slow.throttled = true;
  EXPECT_EQ(found(ranks).causes(0).action(),
            "the CPU quota of " + who + " stops it for 40 % of its step: raise it");
  slow.delayed = 0;
  slow.slow_gpu = "heat";
  EXPECT_EQ(found(ranks).causes(0).action(),
            "the clock of the GPU of " + who +
                " is lowered (heat): check its cooling and its power limit");
  slow.input = 41 * kMs;
  EXPECT_EQ(found(ranks).causes(0).action(),
            who + " waits for its input: look at its disk and its data; " + kNoMoreCores);
}

TEST(FindBottleneck, RanksWithoutCores_AreTheHost) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) rank.delayed = 40 * kMs;
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::HOST);
  EXPECT_THAT(one.causes(0).action(),
              AllOf(HasSubstr("no core for 40 %"), HasSubstr("OMP_NUM_THREADS")));
  for (RankTimes& rank : ranks) {
    rank.throttled = true;
    rank.quota = 1.5;
  }
  EXPECT_THAT(found(ranks).causes(0).action(),
              AllOf(HasSubstr("CPU quota of 1.5 cores"), HasSubstr("40 % of the step")));
}

// A quota stops the data threads too: more of them would not help.
TEST(FindBottleneck, LateBatchesUnderAQuota_AreTheHost) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.delayed = 30 * kMs;
    rank.input = 20 * kMs;
    rank.throttled = true;
  }
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::HOST);
  EXPECT_NEAR(one.causes(0).share(), 0.50, 1e-9);
}

// The first thread waits for the cores on which the rank's own data threads decode.
TEST(FindBottleneck, LateBatchesOfRanksThatHaveTheirCores_AreInput) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.delayed = 17 * kMs;
    rank.input = 63 * kMs;
    rank.making = 99 * kMs;
    rank.data_threads = 1;
    rank.cores = 1;
    rank.cpu = 97 * kMs;
  }
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::INPUT);
  EXPECT_NEAR(one.causes(0).share(), 0.80, 1e-9);
  EXPECT_EQ(one.causes(0).action(), kNoMoreCores);
  for (RankTimes& rank : ranks) rank.cpu = 50 * kMs;  // other processes have the rest
  EXPECT_EQ(found(ranks).causes(0).kind(), Cause::HOST);
}

// Two ranks on two cores that they keep busy: their first threads wait longer for cores than for
// batches.
std::vector<RankTimes> crowded() {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.delayed = 28 * kMs;
    rank.input = 20 * kMs;
    rank.making = 90 * kMs;
    rank.data_threads = 1;
    rank.cores = 1;
    rank.cpu = 96 * kMs;
    rank.others = 0.01;
  }
  return ranks;
}

TEST(FindBottleneck, CoresThatOwnDataThreadsUse_AreInput) {
  auto ranks = crowded();
  const Bottleneck decoding = found(ranks);
  ASSERT_EQ(decoding.causes_size(), 1);
  EXPECT_EQ(decoding.causes(0).kind(), Cause::INPUT);
  EXPECT_NEAR(decoding.causes(0).share(), 0.48, 1e-9);
  EXPECT_EQ(decoding.causes(0).action(), kNoMoreCores);
  // Decoded images from the cache: the data threads only augment.
  for (RankTimes& rank : ranks) {
    rank.delayed = 15 * kMs;
    rank.input = 3 * kMs;
    rank.making = 30 * kMs;
  }
  const Bottleneck cached = found(ranks);
  ASSERT_EQ(cached.causes_size(), 1);
  EXPECT_EQ(cached.causes(0).kind(), Cause::INPUT);
  EXPECT_NEAR(cached.causes(0).share(), 0.18, 1e-9);
  // More data threads take cores from each other.
  for (RankTimes& rank : ranks) {
    rank.cores = 4;
    rank.making = 180 * kMs;
  }
  EXPECT_EQ(found(ranks).causes(0).action(), kNoMoreCores);
}

TEST(FindBottleneck, CoresThatTheRanksThemselvesUse_AreTheHostWithoutOtherProcesses) {
  auto ranks = crowded();
  for (RankTimes& rank : ranks) {
    rank.input = 1 * kMs;
    rank.making = 10 * kMs;
    rank.reading = 1 * kMs;
  }
  Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::HOST);
  EXPECT_THAT(one.causes(0).action(),
              AllOf(HasSubstr("28 %"), HasSubstr("OMP_NUM_THREADS"), Not(HasSubstr("processes"))));
  // Data threads that wait for cores, too, work no longer than the CPU time of their rank.
  for (RankTimes& rank : ranks) {
    rank.delayed = 70 * kMs;
    rank.making = 95 * kMs;
    rank.cpu = 25 * kMs;
  }
  one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::HOST);
}

TEST(FindBottleneck, CoresThatOtherProcessesUse_AreTheHost) {
  auto ranks = crowded();
  for (RankTimes& rank : ranks) {
    rank.cpu = 78 * kMs;  // its own share looks high enough
    rank.others = 0.21;
  }
  Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::HOST);
  EXPECT_NEAR(one.causes(0).share(), 0.48, 1e-9);
  EXPECT_THAT(one.causes(0).action(),
              AllOf(HasSubstr("28 %"), HasSubstr("other processes use 21 %")));
  for (RankTimes& rank : ranks) rank.others = 0.6;
  EXPECT_EQ(found(ranks).causes(0).kind(), Cause::HOST);
  // A quota stops the ranks wherever the cores' time goes.
  for (RankTimes& rank : ranks) {
    rank.others = 0.01;
    rank.throttled = true;
    rank.quota = 1.5;
  }
  one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::HOST);
  EXPECT_THAT(one.causes(0).action(), HasSubstr("1.5 cores"));
}

// A few other processes do not explain why batches are late.
TEST(FindBottleneck, LateBatchesBesideFewOtherProcesses_StayInput) {
  auto ranks = crowded();
  for (RankTimes& rank : ranks) {
    rank.delayed = 12 * kMs;
    rank.input = 60 * kMs;
    rank.others = 0.15;
  }
  EXPECT_EQ(found(ranks).causes(0).kind(), Cause::INPUT);
  EXPECT_NEAR(found(ranks).causes(0).share(), 0.60, 1e-9);
}

// Ranks that compete for cores are late in turns.
TEST(FindBottleneck, RankThatWaitsLongerForSharedCores_IsNoStraggler) {
  auto ranks = crowded();
  ranks[0].delayed = 20 * kMs;
  ranks[0].exposed = ranks[0].exchange = 30 * kMs;
  ranks[1].delayed = 47 * kMs;
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::INPUT);
}

// Without processes of others on its cores, a slow rank is not told to stop them.
TEST(FindBottleneck, StragglerWithItsCores_HasTooManyThreads) {
  auto ranks = healthy(3);
  for (RankTimes& rank : ranks) rank.exposed = 43 * kMs;
  ranks[2].exposed = 3 * kMs;
  ranks[2].delayed = 40 * kMs;
  ranks[2].others = 0.02;
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).rank(), 2);
  EXPECT_THAT(one.causes(0).action(),
              AllOf(HasSubstr("40 %"), HasSubstr("OMP_NUM_THREADS"), Not(HasSubstr("processes"))));
}

TEST(FindBottleneck, LateBatchesOfAllRanks_AreInputIfOneWaitsLonger) {
  auto ranks = healthy(2);
  ranks[0].step = ranks[1].step = 100 * kMs;
  ranks[0].input = 50 * kMs;
  ranks[0].exposed = ranks[0].exchange = 30 * kMs;
  ranks[1].input = 77 * kMs;
  const Bottleneck all = found(ranks);
  ASSERT_EQ(all.causes_size(), 1);
  EXPECT_EQ(all.causes(0).kind(), Cause::INPUT);
  EXPECT_NEAR(all.causes(0).share(), 0.77, 1e-9);
  ranks[0].input = 20 * kMs;
  ranks[0].exposed = ranks[0].exchange = 60 * kMs;
  const Bottleneck one = found(ranks);
  ASSERT_GE(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::STRAGGLER);
  EXPECT_EQ(one.causes(0).rank(), 1);
}

// Ranks that compete for cores come to their collectives at different times.
TEST(FindBottleneck, WaitingForPeersWithoutCores_IsNotTheLink) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.delayed = 25 * kMs;
    rank.exposed = 20 * kMs;
  }
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::HOST);
  EXPECT_GT(one.causes(0).share(), 0.4);
  for (RankTimes& rank : ranks) {
    rank.delayed = 6 * kMs;
    rank.input = 60 * kMs;
  }
  ASSERT_EQ(found(ranks).causes_size(), 1);
  EXPECT_EQ(found(ranks).causes(0).kind(), Cause::INPUT);
}

// Batches that are late reach the ranks at different times.
TEST(FindBottleneck, WaitingForPeersWithLateBatches_IsNotTheLink) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.input = 60 * kMs;
    rank.exposed = 22 * kMs;
    rank.exchange = 2 * kMs;
  }
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::INPUT);
  EXPECT_NEAR(one.causes(0).share(), 0.80, 0.01);
}

TEST(FindBottleneck, TwoCauses_AreBothNamedTheLargerFirst) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.input = 25 * kMs;
    rank.exposed = rank.exchange = 35 * kMs;
  }
  const Bottleneck both = found(ranks);
  ASSERT_EQ(both.causes_size(), 2);
  EXPECT_EQ(both.causes(0).kind(), Cause::COMMUNICATION);
  EXPECT_EQ(both.causes(1).kind(), Cause::INPUT);
  EXPECT_EQ(both.line(), "bottleneck: communication, 35 % of the step: " + kExchangeLess +
                             "; and input, 25 % of the step: " + kNoMoreCores);
}

// Three causes of a third each: none, and no two, explain 80 % of what is lost.
TEST(FindBottleneck, LossWithoutALeadingCause_NamesNone) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.input = 18 * kMs;
    rank.exposed = 39 * kMs;
    rank.reading = rank.making;  // so that the input is not put down to the host
    rank.delayed = 20 * kMs;
  }
  ranks[1].exposed = 19 * kMs;
  const Bottleneck none = found(ranks);
  EXPECT_TRUE(none.causes().empty());
  EXPECT_LT(none.compute(), 0.5);
}

TEST(FindBottleneck, HiddenCollectives_LeaveInputAndHost) {
  auto ranks = healthy(2);
  for (RankTimes& rank : ranks) {
    rank.exposed.reset();
    rank.input = 40 * kMs;
  }
  ranks[1].step = 200 * kMs;  // nobody knows whether it waits
  const Bottleneck one = found(ranks);
  ASSERT_EQ(one.causes_size(), 1);
  EXPECT_EQ(one.causes(0).kind(), Cause::INPUT);
}

TEST(FindBottleneck, RandomNoiseOfAHealthyJob_NeverAlarms) {
  std::mt19937 random(7);
  const auto noise = [&](double most) { return std::uniform_real_distribution<>(0, most)(random); };
  for (int trial = 0; trial < 1000; ++trial) {
    auto ranks = healthy(2 + trial % 7);
    for (RankTimes& rank : ranks) {
      rank.input = noise(3 * kMs);
      rank.exposed = noise(6 * kMs);
      rank.delayed = noise(3 * kMs);
    }
    EXPECT_THAT(found(ranks).causes(), IsEmpty()) << trial;
  }
}

// A job of two ranks, second by second: ten steps of 100 ms.
struct BottleneckAnalyzerTest : ::testing::Test {
  BottleneckAnalyzerTest() { analyzer.begin(1, now); }

  // Returns the lines. `input`, `exposed`: of a step.
  std::vector<std::string> pass(int seconds, double input, double exposed) {
    std::vector<std::string> lines;
    for (int second = 0; second < seconds; ++second) {
      now += 1s;
      StepReport reports;
      for (int number : {0, 1}) {
        RankSteps& steps = ranks[number];
        steps.set_rank(number);
        steps.set_steps(steps.steps() + 10);
        steps.set_step_at_ns(steps.step_at_ns() + static_cast<int64_t>(1000 * kMs));
        steps.set_step_ns(steps.step_ns() + static_cast<int64_t>(1000 * kMs));
        steps.set_input_ns(steps.input_ns() + static_cast<int64_t>(10 * input * kMs));
        steps.set_exposed_ns(steps.exposed_ns() + static_cast<int64_t>(10 * exposed * kMs));
        steps.set_exchange_ns(steps.exposed_ns());
        steps.set_data_threads(1);
        *reports.add_ranks() = steps;
        RankUsage* usage = reports.add_usage();
        usage->set_rank(number);
        usage->set_at_ns(steps.step_at_ns());
        usage->set_cores(1);
        usage->set_delayed_ns(static_cast<int64_t>(delayed * static_cast<double>(usage->at_ns())));
        const double ms = static_cast<double>(usage->at_ns()) / kMs;
        usage->set_cpu_ms(static_cast<int64_t>(cpu * ms));
        usage->set_busy_ms(static_cast<int64_t>(busy * ms));
        usage->set_ours_ms(static_cast<int64_t>(ours * ms));
        usage->set_quota(quota);
        usage->set_throttled_ns(static_cast<int64_t>(throttled * 1e6 * ms));
      }
      if (auto line = analyzer.update(reports, now)) lines.push_back(*line);
    }
    return lines;
  }

  double delayed = 0, cpu = 0, busy = 0, ours = 0, throttled = 0;  // shares of the time
  double quota = 0;
  BottleneckAnalyzer analyzer;
  BottleneckAnalyzer::Time now = BottleneckAnalyzer::Time() + 1000s;
  RankSteps ranks[2];
};

TEST_F(BottleneckAnalyzerTest, FewSteps_SayNothing) {
  EXPECT_FALSE(analyzer.recent());
  pass(4, 50, 0);
  EXPECT_FALSE(analyzer.recent());
  EXPECT_FALSE(analyzer.overall());
}

TEST_F(BottleneckAnalyzerTest, LateBatches_AreTheHostIfOthersUseItsCores) {
  delayed = 0.2;
  cpu = 0.9;
  pass(30, 50, 0);
  EXPECT_EQ(analyzer.overall()->causes(0).kind(), Cause::INPUT);
  analyzer.begin(1, now);
  cpu = 0.5;
  pass(30, 50, 0);
  EXPECT_EQ(analyzer.overall()->causes(0).kind(), Cause::HOST);
}

// What its cores did counts more than what the rank used of them.
TEST_F(BottleneckAnalyzerTest, OtherProcesses_AreThoseThatUseTheCores) {
  delayed = 0.6;
  cpu = 0.6;
  busy = 1;
  ours = 0.6;
  pass(30, 20, 0);
  EXPECT_EQ(analyzer.overall()->causes(0).kind(), Cause::HOST);
  EXPECT_THAT(analyzer.overall()->causes(0).action(), HasSubstr("40 %"));
  analyzer.begin(1, now);
  cpu = 0.8;
  busy = 2;  // two ranks share two cores
  ours = 1.96;
  delayed = 0.1;
  pass(30, 50, 0);
  EXPECT_EQ(analyzer.overall()->causes(0).kind(), Cause::INPUT);
}

TEST_F(BottleneckAnalyzerTest, QuotaThatHardlyStopsARank_IsNotToBlame) {
  delayed = 0.4;
  cpu = 0.5;
  quota = 1.9;
  throttled = 0.01;
  pass(30, 1, 0);
  EXPECT_THAT(analyzer.overall()->causes(0).action(), Not(HasSubstr("1.9 cores")));
  analyzer.begin(1, now);
  throttled = 0.4;
  pass(30, 1, 0);
  EXPECT_THAT(analyzer.overall()->causes(0).action(), HasSubstr("1.9 cores"));
}

TEST_F(BottleneckAnalyzerTest, EachMinute_HasALine) {
  EXPECT_EQ(pass(59, 50, 0).size(), 0u);
  EXPECT_EQ(pass(1, 50, 0).size(), 1u);
  EXPECT_EQ(pass(180, 50, 0).size(), 3u);
}

TEST_F(BottleneckAnalyzerTest, HealthyMinutes_HaveNone) {
  EXPECT_THAT(pass(300, 1, 2), IsEmpty());
  EXPECT_TRUE(analyzer.recent()->causes().empty());
  EXPECT_NEAR(analyzer.overall()->compute(), 0.97, 0.01);
}

TEST_F(BottleneckAnalyzerTest, CauseThatChanges_IsSeenInItsOwnMinute) {
  EXPECT_THAT(pass(60, 50, 0), ElementsAre("bottleneck: input, 50 % of the step: " + kNoMoreCores));
  EXPECT_THAT(pass(60, 0, 50),
              ElementsAre("bottleneck: communication, 50 % of the step: " + kExchangeLess));
  EXPECT_EQ(analyzer.overall()->causes_size(), 2);  // half of the time each
}

TEST_F(BottleneckAnalyzerTest, FirstReport_IsLeftOutBecauseFirstStepsTakeLonger) {
  for (RankSteps& rank : ranks) rank.set_input_ns(static_cast<int64_t>(1e12));
  pass(20, 1, 1);
  EXPECT_TRUE(analyzer.overall()->causes().empty());
}

TEST_F(BottleneckAnalyzerTest, NewGeneration_BeginsAnew) {
  pass(30, 50, 0);
  EXPECT_TRUE(analyzer.overall());
  analyzer.begin(1, now);
  EXPECT_FALSE(analyzer.overall());
}

}  // namespace
}  // namespace fleet
