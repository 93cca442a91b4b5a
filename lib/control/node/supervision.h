// The launcher's reactions to events of its ranks, its job and itself, as a state machine:
// step(event, now) returns the actions. Pure: no sockets, no processes, no clock of its own.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "node/node_ranks.h"
#include "node/stop_signals.h"
#include "node/verdict_text.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {

// --- Events, in addition to messages of the host and the guardian ---
// A StopRequest is also a stop signal to this launcher. A first one is passed to all ranks of the
// job; a second one kills them (StopSignals).

// This node has its place in the first generation: from now on a stop concerns the whole job. Its
// checks run until GenerationBegins.
struct Assigned {};
// A generation begins: start these ranks, unless it must end already.
struct GenerationBegins {
  Assignment assignment;
  wire::SpawnRanks ranks;
};
struct CheckFailed {  // before the start, equally on every node
  std::string text;
};
// The guardian was killed, or does not respond. The caller kills the remaining processes; then
// AllGone follows.
struct GuardianLost {
  bool hung = false;
};
// The remote starter of this launcher is gone: acts as a SIGHUP, unless the job is being stopped.
struct StarterLost {};
// Ctrl-Z, a SIGTSTP.
struct SuspendRequest {
  bool several_nodes = false;  // the job has more than one
};
struct LauncherContinued {};  // after SuspendLauncher
using SupervisionEvent =
    std::variant<wire::HostMessage, Refusal, HostLost, Assigned, GenerationBegins, CheckFailed,
                 wire::GuardianEvent, GuardianLost, wire::StopRequest, StarterLost, SuspendRequest,
                 LauncherContinued>;

// --- Actions, in addition to messages to the host and commands to the guardian ---
struct ShowLine {
  enum Kind { kWarning, kError, kVerdict } kind;
  std::string text;
};
struct RecordVerdict {  // next to the logs, for programs
  Verdict verdict;
};
struct EndLauncher {  // everything is over; once, last
  int exit_code;
};
struct SuspendLauncher {};  // its ranks are stopped; LauncherContinued follows
using SupervisionAction = std::variant<wire::NodeMessage, wire::GuardianCommand, ShowLine,
                                       RecordVerdict, EndLauncher, SuspendLauncher>;

class Supervision {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // grace: between the stop signal to ranks and SIGKILL, unless a stop has a time of its own.
  Supervision(std::chrono::milliseconds grace, const MessageStyle& style)
      : own_grace_(grace), style_(style) {}

  std::vector<SupervisionAction> step(SupervisionEvent event, Time now);

 private:
  void on(const wire::HostMessage& message, Time now);
  void on(const Refusal& refusal, Time now);
  void on(const HostLost& lost, Time now);
  void on(const Assigned&, Time now);
  void on(GenerationBegins& begins, Time now);
  void on(const CheckFailed& failed, Time now);
  void on(wire::GuardianEvent& event, Time now);
  void on(const GuardianLost& lost, Time now);
  void on(const wire::StopRequest& request, Time now);
  void on(const StarterLost&, Time now);
  void on(const SuspendRequest& request, Time now);
  void on(const LauncherContinued&, Time now);
  void on_stop_command(const StopCommand& command, Time now);
  void stop_before_start(const StopCommand& command);
  void on_stack_command(const StackCommand& command, Time now);
  void on_restart_command(const RestartCommand& command);
  void on_replace_command(const wire::ReplaceCommand& command);
  void on_verdict(const Verdict& verdict);
  void on_rank_started(const wire::RankStarted& started, Time now);
  void on_rank_ended(RankExit exit, Time now);
  void on_progress(StepReport report);
  void on_rank_stalled(RankStall stall);
  void on_rank_stopped(const wire::RankStopped& stopped);
  void on_ranks_suspended();
  void on_stacks(Stacks stacks, Time now);
  void send_stacks(Stacks stacks, Time now);
  void on_all_gone(const std::string& stuck, Time now);

  void stop_requested(int signal, Grace grace);
  void kill_requested();
  void ask_to_stop(int signal, Grace grace, bool kill = false);
  void stop(int signal, Grace grace = {});
  void refuse(const std::string& why, int exit_code);
  void leave_restart(const std::string& why);
  std::string guardian_loss() const;
  ExitText text_of(const RankExit& exit) const;
  void end(int exit_code);
  void end_if_over();

  void send(wire::NodeMessage message) { actions_.push_back(std::move(message)); }
  void finish_node() { send(envelope(&wire::NodeMessage::mutable_finished)); }
  void kill_ranks() { actions_.push_back(envelope(&wire::GuardianCommand::mutable_kill)); }
  void show(ShowLine::Kind kind, std::string text) {
    actions_.push_back(ShowLine{kind, std::move(text)});
  }

  const std::chrono::milliseconds own_grace_;
  const MessageStyle style_;
  std::vector<SupervisionAction> actions_;  // this step's
  std::optional<NodeRanks> ranks_;          // in the last generation that has begun here
  std::optional<Verdict> verdict_;
  std::optional<int> refused_;  // the exit code
  StopSignals signals_;
  Grace grace_;                           // for the stop that signals_.own() requested
  std::optional<int> restarting_;         // the generation that is over
  std::optional<GenerationBegins> next_;  // waits until that one's ranks have ended
  bool stopping_ = false, gone_ = false;  // this generation's ranks
  bool stuck_ = false, guardian_lost_ = false, ended_ = false;
  bool assigned_ = false;   // to the first generation, perhaps before it begins here
  bool hung_ = false;       // the guardian, before it was lost
  bool host_lost_ = false;  // no node hosts the rendezvous at present
  bool killing_ = false;    // a user of this node requested a kill
};

}  // namespace fleet
