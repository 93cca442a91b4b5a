// fleet.init(): this process becomes one rank of a job.
#pragma once

#include <atomic>
#include <string>

#include "api/world.h"

namespace fleet {

struct InitOptions {
  std::string log_level;       // DEBUG, INFO, WARNING, ERROR; "": FLEET_LOG_LEVEL, else INFO
  bool handle_signals = true;  // SIGTERM, SIGINT, SIGHUP and SIGQUIT set wants_to_stop(), SIGUSR1
                               // and SIGUSR2 count in checkpoint_requests(). A thread of its own
                               // handles them (base/signal_thread.h); the calling thread blocks
                               // them, and so do threads and child processes that it starts later
};

// One per process. For the thread that made it; any thread may call wants_to_stop().
class Worker {
 public:
  explicit Worker(World world) : world_(std::move(world)) {}
  Worker(Worker&&) = default;

  int rank() const { return world_.rank; }  // from 0
  int size() const { return world_.size; }  // in the job
  int nodes() const { return world_.node_count(); }
  bool is_first() const { return world_.rank == 0; }
  // Whether this process is a parameter server of the job, else a trainer; and their number.
  bool is_server() const { return world_.server >= 0; }
  bool is_worker() const { return !is_server(); }
  int server_num() const { return static_cast<int>(world_.servers.size()); }
  int server_index() const { return world_.server; }  // from 0; -1 on a trainer
  const World& world() const { return world_; }
  // Whether a signal asked this rank to end; ProgramExecutor::agree_to_stop() turns that into a
  // decision of all ranks.
  bool wants_to_stop() const { return stop_signal()->load() != 0; }
  // The signal that was received, or 0. Lives as long as the process.
  const std::atomic<int>* stop_signal() const;
  // Number of SIGUSR1 and SIGUSR2, which ask for a checkpoint. Lives as long as the process.
  const std::atomic<int>* checkpoint_requests() const;

 private:
  World world_;
};

// While an object of this class lives, a stop signal ends the process after kStopSeconds, with a
// line and exit code 128 + the signal. For the start of a job, which has nothing to save yet, and
// where reading from an unresponsive mount may block forever. Only one at a time; any thread may
// create or destroy it. Uses alarm(2).
class StartupStopTimeout {
 public:
  static constexpr unsigned kStopSeconds = 2;
  StartupStopTimeout();
  ~StartupStopTimeout();
  StartupStopTimeout(const StartupStopTimeout&) = delete;
};

// Sets up the log and reads the environment that fleetrun made; without one, the job has one rank.
// Reserves closed standard streams with /dev/null, so that no later file gets the log's lines.
// kUsage if there are several ranks and no rendezvous: start the program with fleetrun.
// kUnsupported in a job with parameter servers.
Worker init_collective(const InitOptions& options = {});
// Like init_collective(), for any job: this process may be a parameter server
// (api/parameter_server.h).
Worker init_process(const InitOptions& options = {});
// The same without the log, for programs that set up their own.
Worker join_job(bool handle_signals = true);

}  // namespace fleet
