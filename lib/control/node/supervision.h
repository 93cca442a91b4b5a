// The launcher's reactions to events of its ranks, its job and itself, as a state machine: no
// sockets, no processes, no clock of its own.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "node/stop_signals.h"
#include "rendezvous/control_messages.h"
#include "rendezvous/types.h"

namespace fleet {

// The actions of the state machine. Calls happen within its on_...() and must not call back in.
class SupervisionEffects {
 public:
  virtual ~SupervisionEffects() = default;
  virtual void send(wire::NodeMessage message) = 0;      // to the rendezvous
  virtual void collect_stacks() = 0;                     // of the local ranks; then on_stacks()
  virtual void stop_ranks(int signal, Grace grace) = 0;  // signal the local ranks; grace; SIGKILL
  virtual void kill_ranks() = 0;                         // SIGKILL every local descendant now
  virtual void warn(const std::string& text) = 0;        // for the user, as a warning
  virtual void record_verdict(const Verdict& verdict) = 0;  // beside the logs, for programs
  virtual void print_verdict(const std::string& text) = 0;  // for the user, as an error
  virtual void report_error(const std::string& text) = 0;   // for the user, as an error
  virtual void end(int exit_code) = 0;                      // everything is over; once, last
};

class Supervision {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `colors`: whether the program's last lines keep their colours in messages.
  explicit Supervision(SupervisionEffects& effects, bool colors = false)
      : effects_(effects), colors_(colors) {}

  // --- from the rendezvous ---
  // A generation begins. If true, the caller starts the ranks, whose logs are log_paths (by local
  // rank). False if the generation is to end already.
  bool on_assignment(const Assignment& assignment, std::vector<std::string> log_paths, Time now);
  void on_refusal(const Error& error);
  // The checks before the start failed, equally on every node.
  void on_check_failed(const std::string& text);
  void on_stop_command(const StopCommand& command, Time now);
  void on_stack_command(const StackCommand& command);
  void on_restart_command(const RestartCommand& command);
  void on_host_lost(const HostLost& lost);
  void on_verdict(const Verdict& verdict);

  // --- from the guardian ---
  void on_rank_not_started(int local_rank, const std::string& error, Time now);
  // The guardian knows its ranks by local_rank only: the functions fill in the rest.
  void on_rank_ended(RankExit exit, Time now);
  void on_progress(StepReport report);
  void on_rank_stalled(RankStall stall);
  void on_stacks(Stacks stacks);
  // No process of the job is left on this node. `stuck`: processes that could not be killed.
  void on_all_gone(const std::string& stuck);
  // The guardian was killed. The caller kills the remaining processes, then calls on_all_gone().
  void on_guardian_lost();

  // --- from the user ---
  // A first signal is passed to all ranks of the job; a second one kills them (StopSignals).
  void on_signal(int signal, Time now);
  // The same as a message, with its own grace time or as a kill.
  void on_stop(const wire::StopJob& request, Time now);
  // The remote starter of this launcher is gone: acts as a SIGHUP, unless the job is being stopped.
  void on_starter_lost(Time now);

 private:
  void stop_requested(int signal, Grace grace);
  void kill_requested();
  void stop(int signal, Grace grace = {});
  void trainer_ended();
  void leave_restart(const std::string& why);
  void end(int exit_code);
  void end_if_over();

  SupervisionEffects& effects_;
  const bool colors_;
  std::optional<Assignment> assignment_;
  std::vector<std::string> log_paths_;
  Time started_{};
  std::optional<Verdict> verdict_;
  std::optional<int> refused_;  // the exit code
  StopSignals signals_;
  Grace grace_;                           // of the stop that signals_.own() requested
  int trainers_ = 0;                      // running ones of this node
  std::optional<int> restarting_;         // the generation that is over
  bool stopping_ = false, gone_ = false;  // of the ranks of this generation
  bool stuck_ = false, guardian_lost_ = false, ended_ = false;
  bool host_lost_ = false;  // no node hosts the rendezvous at present
  bool killing_ = false;    // a user of this node requested a kill
};

// What happened (headline()), Paddle's ABORT line, where it happened, and the last lines of the
// rank's log; or the message of another kind of verdict. Empty for a success. `world`: of the job;
// nullptr if it did not run. With `colors`, those lines keep their colours.
std::string verdict_text(const Verdict& verdict, const World* world, bool colors = false);
// Why the job restarts, and the last lines of the failed rank's log.
std::string restart_text(const RestartCommand& command, bool colors = false);

}  // namespace fleet
