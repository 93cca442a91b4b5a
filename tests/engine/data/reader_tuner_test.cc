#include "data/reader_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/random.h"

namespace fleet::data {
namespace {

// A reader whose threads make `per_thread` batches a second each, up to `limit` together (a disk,
// or the cores), and a network that takes `network` batches a second. Batches come in bursts of
// `burst`: with fewer ahead, the network waits for a part of them.
struct Machine {
  double per_thread, limit, network;
  int burst = 1;
  double noise = 0;

  double read(int threads) const { return std::min(per_thread * threads, limit); }
  double rate(const ReaderSize& size) const {
    const double smooth = std::min(1.0, static_cast<double>(size.prefetch) / burst);
    return std::min(read(size.threads), network) * (0.5 + 0.5 * smooth);
  }
  double best(const ReaderSize& most) const {
    double best = 0;
    for (int threads = 1; threads <= most.threads; ++threads) {
      for (int prefetch = 1; prefetch <= most.prefetch; ++prefetch) {
        best = std::max(best, rate({threads, prefetch}));
      }
    }
    return best;
  }
  ReaderTuner::Window window(const ReaderSize& size, double seconds, double draw) const {
    const double now = rate(size) * (1 + noise * (2 * draw - 1));
    const double waited = seconds * std::max(0.0, 1 - now / network);
    const double busy = now / read(size.threads);
    return {.seconds = seconds,
            .batches = static_cast<int64_t>(std::lround(now * seconds)),
            .waited = waited,
            .idle = seconds * size.threads * std::max(0.0, 1 - busy)};
  }
};

// Runs for 30 seconds; returns the final rate as a share of the best of a sweep.
double share_after_30_seconds(const Machine& machine, ReaderSize* found) {
  const ReaderSize most{32, 8};
  ReaderTuner tuner({.first = {1, 2}, .most = most});
  RandomStream random(7, "noise");
  for (double time = 0; time < 30;) {
    double seconds = 0.5;
    while (
        !ReaderTuner::is_long_enough(seconds, std::lround(machine.rate(tuner.size()) * seconds))) {
      seconds += 0.1;
    }
    tuner.next(machine.window(tuner.size(), seconds, random.uniform()));
    time += seconds;
  }
  *found = tuner.size();
  return machine.rate(tuner.size()) / machine.best(most);
}

TEST(ReaderTuner, Within30Seconds_ReachesTheBestOfASweep) {
  for (const double per_thread : {2.0, 5.0, 40.0}) {
    for (const double limit : {6.0, 60.0, 1000.0}) {
      for (const double network : {3.0, 18.0, 90.0}) {
        for (const int burst : {1, 6}) {
          for (const double noise : {0.0, 0.01}) {
            const Machine machine{per_thread, limit, network, burst, noise};
            ReaderSize found;
            EXPECT_GE(share_after_30_seconds(machine, &found), 0.95)
                << per_thread << " batches/s a thread, at most " << limit << ", network " << network
                << ", bursts of " << burst << ": " << found.threads << " threads, "
                << found.prefetch << " ahead";
          }
        }
      }
    }
  }
}

TEST(ReaderTuner, FastReader_StaysSmall) {
  ReaderSize found;
  EXPECT_EQ(share_after_30_seconds({.per_thread = 100, .limit = 1000, .network = 50}, &found), 1);
  EXPECT_EQ(found, (ReaderSize{1, 2}));
}

// More threads than a disk can serve are given back.
TEST(ReaderTuner, TrialWithoutGain_IsTakenBackAndNotRepeatedAtOnce) {
  ReaderTuner tuner({.first = {4, 2}, .most = {32, 2}});
  const Machine disk{.per_thread = 2, .limit = 8, .network = 50};
  const ReaderSize tried = tuner.next(disk.window(tuner.size(), 1, 0));
  EXPECT_EQ(tried, (ReaderSize{6, 2}));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(tuner.next(disk.window(tuner.size(), 1, 0)), (ReaderSize{4, 2}));
  }
}

TEST(ReaderTuner, LoadThatChangesLater_IsFollowed) {
  ReaderTuner tuner({.first = {1, 2}, .most = {16, 2}});
  Machine machine{.per_thread = 10, .limit = 1000, .network = 10};
  for (int i = 0; i < 20; ++i) tuner.next(machine.window(tuner.size(), 1, 0));
  EXPECT_EQ(tuner.size().threads, 1);
  machine.network = 80;  // as for a smaller network
  for (int i = 0; i < 20; ++i) tuner.next(machine.window(tuner.size(), 1, 0));
  EXPECT_GE(tuner.size().threads, 8);
}

TEST(ReaderTuner, NotTuned_NeverChanges) {
  ReaderTuner tuner({.first = {3, 4}, .most = {3, 4}});
  const Machine slow{.per_thread = 1, .limit = 3, .network = 100};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(tuner.next(slow.window(tuner.size(), 1, 0)), (ReaderSize{3, 4}));
  }
}

}  // namespace
}  // namespace fleet::data
