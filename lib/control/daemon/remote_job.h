// A job on several nodes, started through their fleetds: the client's reactions to their messages,
// as a state machine without sockets or a clock.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/job_info.h"

namespace fleet {

// The actions of the state machine. They must not call back into it.
class RemoteJobEffects {
 public:
  virtual ~RemoteJobEffects() = default;
  virtual void launch(int node, int rdzv_port) = 0;
  virtual void signal(int node, int number) = 0;
  virtual void detach(int node) = 0;
  virtual void close_session(int node) = 0;  // releases a reservation, stops a running job
  virtual void warn(const std::string& text) = 0;
  virtual void report_error(const std::string& text) = 0;
  // Calls on_timer() after `time`; replaces an earlier call.
  virtual void start_timer(std::chrono::milliseconds time) = 0;
  virtual void end(int exit_code) = 0;  // called once, at the end
};

// First, every fleetd prepares its part before anything runs. Then node 0 is launched and reports
// where its rendezvous listens. Then the other nodes are launched. If a node refuses or disappears
// before the job runs, everything is undone, unless the job accepts fewer nodes.
// Once the job runs, the launchers alone detect lost nodes and decide who continues and what the
// verdict is. The client waits until all reachable launchers have ended. It only stops launchers
// that cannot know: those that never joined, and those that continue after the others have reported
// the verdict.
class RemoteJob {
 public:
  // kAttach: the job already runs, and continues without this client.
  enum class Mode { kStart, kDetach, kAttach };
  struct Options {
    Mode mode = Mode::kStart;
    std::string node_prefix = "fleetd on ";  // name of the server on a node, for messages
    int min_nodes = 0;                       // least number of nodes; 0: all
    bool restarts = false;                   // the job may continue without a lost node
    std::chrono::milliseconds grace{0};
  };
  // names: the nodes' names for messages.
  RemoteJob(RemoteJobEffects& effects, std::vector<std::string> names, Options options);

  void on_prepared(int node);
  void on_refused(int node, const Error& error);
  void on_hosting(int node, int rdzv_port);
  // Its ranks run, in a world of `nnodes` nodes. Called again after each restart.
  void on_running(int node, int nnodes);
  void on_detached(int node);
  // Its fleetrun has ended. `verdict` is set if it knows how the job ended.
  void on_ended(int node, int code, const std::optional<VerdictSummary>& verdict);
  // The client session broke.
  void on_lost(int node, const Error& why);
  void on_signal(int number);
  void on_timer();
  bool detached() const { return detached_; }

 private:
  enum class State { kPending, kPrepared, kLaunched, kRunning, kDetached, kEnded };

  State& at(int node) { return states_[static_cast<size_t>(node)]; }
  const std::string& name(int node) const { return names_[static_cast<size_t>(node)]; }
  int count(State state) const;
  bool any(State state) const { return count(state) > 0; }
  bool launched(int node) const;
  int nodes() const { return static_cast<int>(states_.size()); }
  // Whether enough nodes are left.
  bool has_min_nodes() const { return nodes() - count(State::kEnded) >= min_nodes_; }
  void launch_if_all_prepared();
  void handle_lost(int node, State was, const Error& why);
  void signal_one_launcher(int number);
  // Releases the nodes where the job has not started, and stops it on the others.
  void abort_job(int exit_code, int signal);
  void end_if_done();

  RemoteJobEffects& effects_;
  const std::vector<std::string> names_;
  const Options options_;
  const int min_nodes_;
  std::vector<State> states_;
  bool formed_;  // the rendezvous has completed, and ranks have run
  bool detaching_ = false, detached_ = false, ended_ = false, aborting_ = false;
  int code_ = -1;  // exit code of the job, as far as known
  int signals_ = 0, first_signal_ = 0;
  int last_signal_ = 0;  // the last stop signal sent to the nodes
  std::optional<VerdictSummary> verdict_;
};

}  // namespace fleet
