// The guardian: a small process alongside the launcher that starts the ranks, keeps their logs and
// ensures that no process outlives the job.
//
// A parent-death signal reaches only direct children. The launcher and its guardian are therefore
// both subreapers and monitor each other (the end of their socket reports a death at once). If the
// guardian dies, its ranks get SIGKILL and their orphans become the launcher's children. If the
// launcher dies, the guardian is still the ancestor of all of them. The survivor kills every
// descendant, including daemons.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "transport/event_loop.h"
#include "transport/failure_detector.h"

namespace fleet {

// Limits that the launcher changes for itself: the ranks and --on_end get those of its caller.
struct CallerLimits {
  int nice = 0;
  rlimit descriptors{};
};

// The launcher's handle of the guardian.
struct GuardianProcess {
  pid_t pid = -1;
  UniqueFd socket;  // for a Channel
  UniqueFd alive;   // keep open as long as the launcher lives (OrphanWatchdog)
  CallerLimits limits;
};

// Forks the guardian. Call it before the process has threads, gRPC or a loop, with every signal
// blocked (block_all_signals): the guardian is a copy of this process and stays in its main thread.
// `original` is the ranks' signal mask, `job` the job's name for ps. Makes the caller a subreaper.
GuardianProcess start_guardian(const sigset_t& original, const std::string& job = {});

// The signals of users that the guardian and its watchdog pass to the launcher, except those that
// this process ignores.
std::vector<int> passed_signals();

// A prefix of an environment entry that the ranks of this process alone have: their progress file.
// `guardian`: its number in /proc.
std::string rank_environment_prefix(pid_t guardian);

// Blocks every signal that can be blocked; returns the previous mask.
sigset_t block_all_signals();
// Whether this process ignores the signal: under nohup, or in the background of a script.
bool is_ignored(int signal);

// The main loop of the guardian process.
//
// Serves the launcher at the other end of `socket` until the launcher is gone and no process of the
// ranks is left. `alive`: for an OrphanWatchdog. `original` is the ranks' signal mask,
// `descriptors` their descriptor limit. Call it with every signal blocked; it handles SIGCHLD and
// passed_signals().
void run_guardian_loop(UniqueFd socket, UniqueFd alive, const sigset_t& original,
                       const rlimit& descriptors, const std::string& job);

// Kills all descendants of this process and waits until none is left.
//
// The owner is a subreaper and reaps its children on SIGCHLD, then calls on_children_changed(),
// which finds processes forked during the kill. Not thread-safe.
class ProcessTreeReaper {
 public:
  // `on_gone` is called once per start(), with a line for each process that could not be killed
  // within some seconds (for example because it waits for a dead file server), so that it cannot
  // keep the job from ending.
  ProcessTreeReaper(EventLoop& loop, std::vector<pid_t> except,
                    std::function<void(std::string stuck)> on_gone);
  // Neither kills nor waits for this process from now on.
  void exclude(pid_t pid) { except_.push_back(pid); }
  void start();
  void on_children_changed();

 private:
  void step();
  void finish(std::string stuck);

  std::vector<pid_t> except_;
  std::function<void(std::string)> on_gone_;
  LoopTimer limit_;
  bool running_ = false;
};

// A third process alongside the launcher and the guardian: if both are killed at the same moment,
// it ends the remaining processes of the job. By then the kernel has ended the ranks
// (PR_SET_PDEATHSIG), but not their children.
//
// It is not an ancestor of the ranks, which would take another fork before they can start. It finds
// them by an environment variable, with all their descendants, and by the job's cgroup if it has
// one. Not thread-safe.
class OrphanWatchdog {
 public:
  // alive: the reading end of a pipe whose other end the launcher and the guardian hold open. mark:
  // a prefix of an environment entry ("NAME=VALUE") of each rank and of no other job.
  // job: its name for ps.
  OrphanWatchdog(UniqueFd alive, std::string mark, std::string job)
      : alive_(std::move(alive)), mark_(std::move(mark)), job_(std::move(job)) {}
  ~OrphanWatchdog() { end(); }
  OrphanWatchdog(const OrphanWatchdog&) = delete;

  // Forks it, once. Call it from a single-threaded process. Returns a pipe from which to read the
  // signals that users send to the watchdog, a byte each. Does nothing without a usable /proc.
  UniqueFd start();
  pid_t pid() const { return pid_; }  // -1: there is none
  // A child was reaped.
  void on_child_ended(pid_t pid);
  // Call it when the watchdog is no longer needed: kills it and waits for it.
  void end();

 private:
  UniqueFd alive_;
  const std::string mark_, job_;
  pid_t pid_ = -1;
};

// Notices that the guardian hangs while it ends the ranks, for example in a write to a log on a
// file server that does not answer.
//
// Sends pings from some moment on; on_pong() answers them. Time in which this process was suspended
// does not count. Not thread-safe: everything happens in the loop's thread.
class GuardianMonitor {
 public:
  // Longer than a guardian with thousands of ranks takes to kill them.
  static constexpr HeartbeatTimes kTimes{std::chrono::milliseconds(1'000),
                                         std::chrono::milliseconds(15'000)};

  // `on_hung` is called once per start(), when no ping was answered for times.max_silence.
  GuardianMonitor(EventLoop& loop, std::function<void()> ping, std::function<void()> on_hung,
                  HeartbeatTimes times = kTimes);
  // Begins after `delay`, or earlier if an earlier start() says so.
  void start(std::chrono::milliseconds delay);
  void on_pong();
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void wait_until(Clock::time_point time);
  void tick();

  const HeartbeatTimes times_;
  const std::function<void()> ping_, on_hung_;
  LoopTimer timer_;
  std::optional<Clock::time_point> begin_;   // nullopt: not started
  std::optional<FailureDetector> detector_;  // from begin_ on
};

}  // namespace fleet
