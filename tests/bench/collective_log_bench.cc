// What it costs to record a collective (observe/collective_log.h): against the clock reads that it
// cannot do without, and against the smallest collective that it is recorded for.
//
// Links: comm observe
#include <chrono>
#include <cstdio>
#include <memory>

#include "observe/collective_log.h"
#include "observe/collective_log_reader.h"
#include "tests/engine/comm/ranks.h"

namespace fleet {
namespace {

constexpr int kCalls = 1'000'000;

template <typename Body>
double nanoseconds_each(int times, const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= times; ++i) body(i);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
             .count() /
         times;
}

int run() {
  const CollectiveLogReader reader;
  CollectiveLog log(reader.path());
  const int group = log.add_group("data parallel", {0, 1}, false);
  CollectiveRecord call;
  call.bytes = 25 << 20;
  call.purpose = CollectivePurpose("bucket 4");
  const auto record = [&](int i) {
    call.sequence = i;
    const CollectiveTicket ticket = log.issue(group, call);
    log.start(ticket);
    log.finish(ticket);
  };
  volatile int64_t sink = 0;
  const auto clock = [&](int) {
    for (int k = 0; k < 3; ++k) {
      sink = sink + std::chrono::steady_clock::now().time_since_epoch().count();
    }
  };
  nanoseconds_each(kCalls / 10, record);
  const double recorded = nanoseconds_each(kCalls, record),
               clocks = nanoseconds_each(kCalls, clock);
  double all_reduce = 0;
  run_ranks(on_one_host("shm", 2), [&](Rank& rank) {
    Buffer memory = rank.comm.allocate(4096);
    const View view{memory.data(), 1024, DType::kFloat32};
    const auto once = [&](int) { rank.comm.all_reduce(view, view, ReduceOp::kSum, rank.stream); };
    nanoseconds_each(1000, once);
    const double each = nanoseconds_each(20'000, once);
    if (rank.comm.rank() == 0) all_reduce = each;
  });
  std::printf("a record of a collective, its start and its end: %.0f ns\n", recorded);
  std::printf("  %.2f x its three clock reads (%.0f ns)\n", recorded / clocks, clocks);
  std::printf("  %.2f %% of an all_reduce of 4 KiB between 2 ranks in shared memory (%.1f us)\n",
              100 * recorded / all_reduce, all_reduce / 1000);
  return 0;
}

}  // namespace
}  // namespace fleet

int main() { return fleet::run(); }
