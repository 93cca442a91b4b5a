// What ranks on GPUs wait for each other, by events on the device.
#include "comm/nccl/collective_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "comm/peer_wait_timer.h"
#include "tests/engine/comm/nccl/gpus.h"

namespace fleet {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kMs = 1'000'000;

// Collectives of two ranks, which are threads of this process: their total is what both have
// waited. Rank 1 computes for `late` before each of them; rank 0 waits for it.
int64_t waited_by_both(int steps, milliseconds late, bool recorded) {
  const int64_t before = PeerWaitTimer::total_ns();
  run_ranks(on_gpus({1, 1}), [&](Rank& rank) {
    Buffer memory = rank.comm.allocate(sizeof(float));
    const View view = {memory.data(), 1, DType::kFloat32};
    const auto stream = rank.make_stream("compute");
    const auto sum = [&] { rank.comm.all_reduce(view, view, ReduceOp::kSum, *stream); };
    const auto recording = recorded ? rank.device.record(*stream, sum) : nullptr;
    for (int step = 0; step < steps; ++step) {
      if (rank.comm.rank() == 1) std::this_thread::sleep_for(late);
      if (recording) {
        recording->launch(*stream);
        rank.comm.launched(*stream);
      } else {
        sum();
      }
      rank.finish(*stream);
      std::this_thread::sleep_for(milliseconds(120));  // the watcher collects every 50 ms
    }
  });
  return PeerWaitTimer::total_ns() - before;
}

// Half of it, since rank 0 may come late itself on a busy machine.
TEST(NcclTimes, RankThatWaitsForAnother_CountsIt) {
  EXPECT_GE(waited_by_both(3, milliseconds(100), false), 3 * 50 * kMs);
}

TEST(NcclTimes, RecordedCollectives_CountAtEachLaunch) {
  EXPECT_GE(waited_by_both(3, milliseconds(100), true), 3 * 50 * kMs);
}

// Of launches between two readings, the last one stands for all.
TEST(NcclTimes, LaunchesFasterThanTheReading_AllCount) {
  const auto device = one_gpu();
  const auto stream = device->make_stream("compute");
  const auto native = static_cast<cudaStream_t>(stream->native_handle());
  nccl::CollectiveTimes times;
  const auto recording = device->record(*stream, [&] {
    const int number = times.begin(native, true);
    times.end(number, native, true);
  });
  const int64_t before = PeerWaitTimer::total_ns();
  times.collect();
  EXPECT_EQ(PeerWaitTimer::total_ns(), before);  // it has never run
  for (int launch = 0; launch < 1000; ++launch) {
    recording->launch(*stream);
    times.launched();
  }
  stream->synchronize();
  times.collect();
  const int64_t once = PeerWaitTimer::total_ns() - before;
  EXPECT_GT(once, 0);
  EXPECT_EQ(once % 1000, 0);
  times.collect();  // what was read counts no more
  EXPECT_EQ(PeerWaitTimer::total_ns() - before, once);
}

TEST(NcclTimes, ManyPendingCollectives_AreBounded) {
  const auto device = one_gpu();
  const auto stream = device->make_stream("compute");
  const auto native = static_cast<cudaStream_t>(stream->native_handle());
  nccl::CollectiveTimes times;
  int measured = 0;
  for (int i = 0; i < 1000; ++i) {
    const int number = times.begin(native, false);
    times.end(number, native, false);
    measured += number >= 0 ? 1 : 0;
  }
  EXPECT_EQ(measured, 1000);  // those that have ended make room
}

TEST(NcclTimes, TurnedOff_MeasuresNothing) {
  ::setenv("FLEET_NCCL_TIMES", "0", 1);
  nccl::CollectiveTimes times;
  ::unsetenv("FLEET_NCCL_TIMES");
  const auto device = one_gpu();
  const auto stream = device->make_stream("compute");
  EXPECT_EQ(times.begin(static_cast<cudaStream_t>(stream->native_handle()), false), -1);
}

}  // namespace
}  // namespace fleet
