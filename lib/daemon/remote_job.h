// A job on several nodes, started from elsewhere through their fleetds: what the client does about
// what they tell, as a state machine without sockets or a clock.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/job_info.h"

namespace fleet {

// What the state machine wants done. Calls must not call back in.
class RemoteJobEffects {
 public:
  virtual ~RemoteJobEffects() = default;
  virtual void launch(int node, int rdzv_port) = 0;
  virtual void signal(int node, int number) = 0;
  virtual void detach(int node) = 0;
  virtual void hang_up(int node) = 0;  // what is reserved there is given back, what runs is stopped
  virtual void say(const std::string& text) = 0;
  virtual void fail(const std::string& text) = 0;
  // on_patience_over() after so long; in the place of an earlier call.
  virtual void be_patient(std::chrono::milliseconds time) = 0;
  virtual void end(int exit_code) = 0;  // once, last
};

// In order: every fleetd is asked for a place (prepare) before anything runs; node 0 is launched,
// and tells where its rendezvous listens; then the others. Where one refuses or vanishes before the
// job runs, nothing is left half-started, unless the job may do with fewer nodes.
// Once it runs, the launchers alone find out who is lost, who goes on and what the verdict is: the
// client waits until all that it can hear have ended. It only stops those that cannot know: what
// has not met, and who goes on when the others have told the last word.
class RemoteJob {
 public:
  // kAttach: the job runs already, and goes on without this client.
  enum class Mode { kStart, kDetach, kAttach };
  struct Terms {
    Mode mode = Mode::kStart;
    std::string server = "fleetd on ";  // what is on a node, in messages
    int fewest = 0;                     // so many nodes may be enough; 0: all are wanted
    bool restarts = false;              // a job that has lost a node may go on
    std::chrono::milliseconds grace{0};
  };
  // names: the nodes, for messages.
  RemoteJob(RemoteJobEffects& effects, std::vector<std::string> names, Terms terms);

  void on_prepared(int node);
  void on_refused(int node, const Error& error);
  void on_hosting(int node, int rdzv_port);
  // Its ranks run, in a world of so many nodes; told anew after a restart.
  void on_running(int node, int nnodes);
  void on_detached(int node);
  // Its fleetrun has ended. `verdict`: where it knows how the job ended.
  void on_ended(int node, int code, const std::optional<VerdictNote>& verdict);
  // The conversation broke.
  void on_lost(int node, const Error& why);
  void on_signal(int number);
  void on_patience_over();
  bool detached() const { return left_; }

 private:
  enum class State { kAsked, kPrepared, kLaunched, kRunning, kDetached, kOver };

  State& at(int node) { return states_[static_cast<size_t>(node)]; }
  const std::string& name(int node) const { return names_[static_cast<size_t>(node)]; }
  int count(State state) const;
  bool any(State state) const { return count(state) > 0; }
  bool launched(int node) const;
  int nodes() const { return static_cast<int>(states_.size()); }
  // So many nodes are left that it may do with them.
  bool enough() const { return nodes() - count(State::kOver) >= fewest_; }
  void launch_if_all_answered();
  void lost(int node, State was, const Error& why);
  void tell_one_launcher(int number);
  // Nothing is left of the job where it has not started yet; what runs is told to stop.
  void give_up(int exit_code, int signal);
  void end_if_over();

  RemoteJobEffects& effects_;
  const std::vector<std::string> names_;
  const Terms terms_;
  const int fewest_;
  std::vector<State> states_;
  bool begun_;  // the nodes have met: their ranks have run
  bool leaving_ = false, left_ = false, ended_ = false, giving_up_ = false;
  int code_ = -1;  // of the job, as far as it is known
  int signals_ = 0, first_signal_ = 0;
  int sent_ = 0;  // the last stop signal that the nodes were sent
  std::optional<VerdictNote> verdict_;
};

}  // namespace fleet
