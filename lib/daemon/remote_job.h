// A job on several nodes, started from elsewhere through their fleetds: what the client does about
// what they tell, as a state machine without sockets or a clock.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

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
  // The others will not hear of it by themselves: on_patience_over() after a few seconds.
  virtual void be_patient() = 0;
  virtual void end(int exit_code) = 0;  // once, last
};

// In order: every fleetd is asked for a place (prepare) before anything runs; node 0 is launched,
// and tells where its rendezvous listens; then the others. Where one refuses or vanishes before the
// job runs, nothing is left half-started. While it runs, the launchers find the verdict among
// themselves.
class RemoteJob {
 public:
  // kAttach: the job runs already, and goes on without this client.
  enum class Mode { kStart, kDetach, kAttach };
  // names: the nodes, for messages. `server`: what is on a node, "fleetd on ".
  RemoteJob(RemoteJobEffects& effects, std::vector<std::string> names, Mode mode,
            std::string server = "fleetd on ");

  void on_prepared(int node);
  void on_refused(int node, const Error& error);
  void on_hosting(int node, int rdzv_port);
  void on_running(int node);
  void on_detached(int node);
  // Its fleetrun has ended. `verdict`: what is to be told of it; `decided`: it knows how the job
  // ended.
  void on_ended(int node, int code, const std::string& verdict, bool decided);
  // The conversation broke.
  void on_lost(int node, const Error& why);
  void on_signal(int number);
  void on_patience_over();
  bool detached() const { return left_; }

 private:
  enum class State { kAsked, kPrepared, kLaunched, kRunning, kDetached, kOver };

  bool all(State state) const;
  bool any(State state) const;
  bool launched(int node) const;
  int count() const { return static_cast<int>(states_.size()); }
  // Nothing is left of the job where it has not started yet; what runs is told to stop.
  void give_up(int exit_code, int signal);
  void end_if_over();

  RemoteJobEffects& effects_;
  std::vector<std::string> names_;
  std::string server_;
  std::vector<State> states_;
  const Mode mode_;
  bool left_ = false, ended_ = false, giving_up_ = false, decided_ = false;
  int code_ = -1;  // of the job, as far as it is known
  int signals_ = 0, first_signal_ = 0;
  int sent_ = 0;  // the last stop signal that the nodes were sent
  std::string verdict_;
};

}  // namespace fleet
