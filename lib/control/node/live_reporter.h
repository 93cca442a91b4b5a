// Reports once a second what the ranks of this node use, while they run. Their steps come from the
// guardian; this is the rest: CPU time, memory, GPUs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "node/gpu_monitor.h"
#include "node/rank_usage.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {

// In a large job nodes report less often, so that the host gets at most 64 of these reports a
// second.
std::chrono::milliseconds usage_interval(int nnodes);

// Not thread-safe: everything happens in the loop's thread.
class LiveReporter {
 public:
  LiveReporter(EventLoop& loop, std::function<void(StepReport)> send);
  ~LiveReporter();

  // A generation begins: forgets the ranks of the one before.
  void begin(const Assignment& assignment);
  // The first report follows when every rank of the node has its process.
  void on_rank_started(int local_rank, pid_t pid);
  void end();  // the ranks are gone

 private:
  void report();
  void wait();

  LoopTimer timer_;
  const std::function<void(StepReport)> send_;
  std::optional<Assignment> assignment_;
  std::vector<RankUsageSampler::Target> targets_;
  RankUsageSampler sampler_;
  std::unique_ptr<GpuMonitor> gpus_;  // nullptr: the ranks have none
  std::chrono::milliseconds interval_{1'000};
};

}  // namespace fleet
