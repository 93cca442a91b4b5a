// Reports once a second what the ranks of this node use, while they run. Their steps come from the
// guardian; this is the rest: CPU time, memory, GPUs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/live_table.h"
#include "node/gpu_monitor.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {

// --- What the ranks use, from /proc and their cgroups: CPU time, memory, and the time in which
// they had no core. A look costs microseconds a process ---

// A cgroup's CPU quota.
struct CpuQuota {
  double cores = 0;          // 0: none
  int64_t throttled_ns = 0;  // time in which it stopped threads, over all cores
};
// The tightest quota of the cgroup of `pid` and of those above it; versions 1 and 2. `root`: the
// prefix of /proc and /sys.
CpuQuota cpu_quota(pid_t pid, const std::string& root = {});

// For each core of this machine, the CPU time that processes have used on it, in ticks
// (_SC_CLK_TCK); -1: unknown. Interrupts do not count: messages of the ranks cause them. `root`:
// the prefix of /proc.
std::vector<int64_t> busy_ticks(const std::string& root = {});

// Not thread-safe.
class RankUsageSampler {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Target {
    int local_rank = 0;
    pid_t pid = -1;
  };
  void watch(const std::vector<Target>& targets);
  // One for each rank that lives: everything but rank, server and gpus. Processes that a rank has
  // started in the last seconds are missing: all of /proc is read at most every 5 s, and for at
  // most 1/200 of the time.
  std::vector<RankUsage> sample(Time now);

 private:
  struct Rank {
    Target target;
    std::vector<pid_t> tree;  // itself first
    CpuQuota quota;
    double cores = 0;
    std::vector<size_t> allowed = {};     // the cores themselves
    std::vector<size_t> neighbours = {};  // ranks that share some of them, with itself
    int64_t cpu_ms = -1;                  // in the previous sample; -1: there was none
    int64_t busy_ms = 0, ours_ms = 0;     // as in RankUsage
  };
  void find_processes(Time now);
  static bool add(const Rank& rank, RankUsage* usage);
  void add_busy_time(const std::vector<RankUsage>& usage);

  std::vector<Rank> ranks_;
  std::vector<int64_t> ticks_;  // busy_ticks() of the previous sample
  Time next_search_{};
};

// In a large job nodes report less often, so that the host gets at most 64 of these reports a
// second.
std::chrono::milliseconds usage_interval(int nnodes);

// Not thread-safe: everything happens in the loop's thread.
class LiveReporter {
 public:
  LiveReporter(EventLoop& loop, std::function<void(StepReport)> send);
  ~LiveReporter();

  // A generation begins: forgets the ranks of its predecessor.
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

// How far the training of this node's ranks is, for the job record: fleetrun ls and status show it.
// Pure: the time is an argument. Not thread-safe.
class ProgressRecord {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void begin();  // a generation begins
  // Returns whether it is time to write the record: every few seconds.
  bool update(const StepReport& report, Time now, double unix_time);
  const wire::JobProgress& progress() const { return progress_; }

 private:
  wire::JobProgress progress_;
  std::map<int, int64_t> steps_;  // by local rank
  TimeLeft time_left_;
  Time next_write_{};
};

}  // namespace fleet
