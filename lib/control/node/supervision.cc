#include "node/supervision.h"

#include <signal.h>

#include <utility>

#include "base/clock.h"
#include "node/rank_stops.h"

namespace fleet {
namespace {

constexpr char kGuardianKilled[] = "its guardian was killed";
constexpr char kGuardianHung[] = "its guardian did not respond";
wire::NodeMessage ready(int generation) {
  wire::NodeMessage message;
  message.mutable_ready()->set_generation(generation);
  return message;
}

wire::NodeMessage failure(const std::string& how) {
  wire::NodeMessage message;
  message.mutable_failure()->set_how(how);
  return message;
}

}  // namespace

std::vector<SupervisionAction> Supervision::step(SupervisionEvent event, Time now) {
  std::visit([&](auto& one) { on(one, now); }, event);
  return std::exchange(actions_, {});
}

void Supervision::on(const wire::HostMessage& message, Time now) {
  switch (message.kind_case()) {
    case wire::HostMessage::kStop:
      return on_stop_command(message.stop(), now);
    case wire::HostMessage::kStacks:
      return on_stack_command(message.stacks(), now);
    case wire::HostMessage::kRestart:
      return on_restart_command(message.restart());
    case wire::HostMessage::kReplace:
      return on_replace_command(message.replace());
    case wire::HostMessage::kVerdict:
      return on_verdict(message.verdict());
    default:
      return;  // nothing to decide
  }
}

void Supervision::on(wire::GuardianEvent& event, Time now) {
  switch (event.kind_case()) {
    case wire::GuardianEvent::kStarted:
      return on_rank_started(event.started(), now);
    case wire::GuardianEvent::kEnded:
      return on_rank_ended(std::move(*event.mutable_ended()), now);
    case wire::GuardianEvent::kProgress:
      return on_progress(std::move(*event.mutable_progress()));
    case wire::GuardianEvent::kStalled:
      return on_rank_stalled(std::move(*event.mutable_stalled()));
    case wire::GuardianEvent::kStacks:
      return on_stacks(std::move(*event.mutable_stacks()), now);
    case wire::GuardianEvent::kAllGone:
      return on_all_gone(event.all_gone().stuck(), now);
    case wire::GuardianEvent::kStopped:
      return on_rank_stopped(event.stopped());
    case wire::GuardianEvent::kSuspended:
      return on_ranks_suspended();
    case wire::GuardianEvent::kServiceBytes:
    case wire::GuardianEvent::kTrace:
    case wire::GuardianEvent::kPong:
    case wire::GuardianEvent::kSignal:
    case wire::GuardianEvent::KIND_NOT_SET:
      return;  // nothing to decide
  }
}

void Supervision::on(const Assigned&, Time) {
  assigned_ = true;
  // It came while the job formed; the other nodes are about to start.
  if (signals_.own() != 0) ask_to_stop(signals_.own(), grace_, killing_);
}

void Supervision::on(GenerationBegins& begins, Time now) {
  const bool over = signals_.own() != 0 || guardian_lost_ || verdict_;
  if (over && !ranks_) return;
  // A late survivor: the other nodes did not wait for its ranks.
  if (restarting_ && !gone_ && !over) {
    next_ = std::move(begins);
    return;
  }
  ranks_.emplace(std::move(begins.assignment), begins.ranks, now);
  assigned_ = true;
  restarting_.reset();
  host_lost_ = false;
  if (over || signals_.any()) {  // the stop arrived before the start
    finish_node();
    if (!gone_) kill_ranks();  // there are none, but the guardian must report it
    stopping_ = true;
    return;
  }
  stopping_ = gone_ = false;
  // A node with servers only has finished when the other nodes have.
  if (ranks_->running_trainers() == 0) finish_node();
  begins.ranks.set_generation(ranks_->generation());
  actions_.push_back(envelope(&wire::GuardianCommand::mutable_spawn, std::move(begins.ranks)));
}

void Supervision::on(const Refusal& refusal, Time) {
  const ErrorCode code = refusal.error.code();
  const bool rendezvous = code == ErrorCode::kTimeout || code == ErrorCode::kStale;
  refuse(refusal.error.what(), rendezvous ? kExitRendezvous : launcher_exit_code(code));
}

// The verdict of a stop is about to arrive, or was held until now.
void Supervision::on(const CheckFailed& failed, Time) {
  if (!signals_.any()) refuse(failed.text, kExitPreflight);
}

void Supervision::refuse(const std::string& why, int exit_code) {
  show(ShowLine::kError, why);
  refused_ = exit_code;
  kill_ranks();
  end_if_over();
}

void Supervision::on_stop_command(const StopCommand& command, Time now) {
  const bool first = !signals_.commanded();
  signals_.on_stop_command(command.signal(), now);
  if (!ranks_ || (restarting_ && gone_)) return first ? stop_before_start(command) : void();
  if (command.kill() && !gone_) kill_ranks();
  if (stopping_) return;
  show(ShowLine::kWarning, "node " + std::to_string(command.node_rank()) + " (" + command.node() +
                               ") received " + signal_name(command.signal()) +
                               (command.kill() ? "; killing the ranks" : "; stopping the ranks"));
  stop(command.signal(), grace_of(command));
}

// No rank of this generation runs here yet, and none will (GenerationBegins): the other nodes do
// not wait for this node's checks.
void Supervision::stop_before_start(const StopCommand& command) {
  if (signals_.own() == 0) {
    show(ShowLine::kWarning, "node " + std::to_string(command.node_rank()) + " (" + command.node() +
                                 ") received " + signal_name(command.signal()) +
                                 "; the job ends before its ranks start");
  }
  finish_node();
}

void Supervision::on_stack_command(const StackCommand& command, Time now) {
  if (stopping_ || gone_ || guardian_lost_ || !ranks_) return send_stacks({}, now);
  if (command.hang()) {
    show(ShowLine::kWarning, "the job hangs (noticed on node " +
                                 std::to_string(command.node_rank()) +
                                 "): collecting the stacks of all ranks");
  }
  wire::CollectStacks collect;
  // A little less than the rendezvous waits. PyTorch resolves the names in its first dump, which
  // took 4.5 s on a busy machine.
  collect.set_limit_ms(command.limit_ms() > 0 ? command.limit_ms() : 4'000);
  collect.set_dump_limit_ms(12'000);
  actions_.push_back(envelope(&wire::GuardianCommand::mutable_collect_stacks, std::move(collect)));
}

void Supervision::on_progress(StepReport report) {
  if (stopping_ || !ranks_) return;
  StepReport counted = ranks_->completed(std::move(report));
  if (counted.ranks_size() + counted.servers_size() > 0)
    send(envelope(&wire::NodeMessage::mutable_steps, std::move(counted)));
}

void Supervision::on_rank_stalled(RankStall stall) {
  if (stopping_ || !ranks_) return;
  ranks_->complete(&stall);
  send(envelope(&wire::NodeMessage::mutable_stall, std::move(stall)));
}

// It waits for an answer that no one can give.
void Supervision::on_rank_stopped(const wire::RankStopped& stopped) {
  if (!ranks_) return;
  show(ShowLine::kError, terminal_stop_text(ranks_->name(stopped.local_rank()), stopped.signal()));
}

void Supervision::on_stacks(Stacks stacks, Time now) {
  if (ranks_) send_stacks(std::move(stacks), now);
}

void Supervision::send_stacks(Stacks stacks, Time now) {
  if (ranks_) stacks = ranks_->completed(std::move(stacks), now);
  send(envelope(&wire::NodeMessage::mutable_stacks, std::move(stacks)));
}

void Supervision::on_restart_command(const RestartCommand& command) {
  if (verdict_ || refused_) return;
  show(ShowLine::kWarning, restart_text(command, text_of(command.cause().exit())));
  restarting_ = command.generation();
  next_.reset();
  host_lost_ = false;
  // The lost host never received it.
  if (guardian_lost_) return send(failure(guardian_loss()));
  if (signals_.own() != 0) ask_to_stop(signals_.own(), grace_);  // it was lost with the host
  if (!gone_) return stop(SIGTERM);
  if (stuck_) return leave_restart("processes are left");
  send(ready(command.generation()));
}

void Supervision::on_replace_command(const wire::ReplaceCommand& command) {
  if (verdict_ || refused_ || restarting_ || !ranks_) return;
  if (command.generation() != ranks_->generation()) return;
  const RankExit& exit = command.exit();
  show(ShowLine::kWarning, replacement_text(command, text_of(exit)));
  if (stopping_ || gone_ || exit.node_rank() != ranks_->node_rank()) return;
  wire::ReplaceRank replace;
  replace.set_local_rank(exit.local_rank());
  replace.set_ordinal(command.ordinal());
  actions_.push_back(envelope(&wire::GuardianCommand::mutable_replace, std::move(replace)));
}

void Supervision::on(const HostLost& lost, Time) {
  if (verdict_ || refused_) return;
  show(ShowLine::kWarning, lost.line);
  restarting_ = lost.generation;
  next_.reset();
  host_lost_ = true;
  if (!gone_) return stop(SIGTERM);
  if (guardian_lost_) leave_restart(guardian_loss());
}

// The other nodes continue without this one, or the job ends.
void Supervision::leave_restart(const std::string& why) {
  show(ShowLine::kError, "this node does not take part in the restart: " + why);
  end(kExitNodeLost);
}

void Supervision::on_verdict(const Verdict& verdict) {
  if (verdict_ || refused_) return;
  verdict_ = verdict;
  if (ranks_) actions_.push_back(RecordVerdict{verdict});
  // Once in the job.
  if (ranks_ && ranks_->node_rank() == 0 && !verdict.bottleneck().causes().empty()) {
    show(ShowLine::kWarning, verdict.bottleneck().line());
  }
  // The user who stopped the job by a signal knows; other nodes have reported the stop command,
  // unless the job was not running.
  const bool known = verdict.kind() == Verdict::STOPPED && signals_.any();
  if (!succeeded(verdict) && !known) {
    const World* world = ranks_ ? &ranks_->world() : nullptr;
    show(ShowLine::kVerdict, verdict_text(verdict, world, text_of(verdict.exit())));
  }
  if (!ranks_) {
    kill_ranks();
  } else if (!gone_) {
    stop(SIGTERM);  // after a success: the parameter servers, which are no longer needed
  }
  end_if_over();
}

void Supervision::on_rank_started(const wire::RankStarted& started, Time now) {
  if (started.error().empty()) return;
  RankExit exit;
  exit.set_local_rank(started.local_rank());
  exit.set_code(127);
  exit.set_note(started.error());
  exit.set_at_ns(steady_ns(now));
  on_rank_ended(std::move(exit), now);
}

void Supervision::on_rank_ended(RankExit exit, Time now) {
  if (!failed(exit)) {
    const bool last = ranks_->on_success(std::move(exit), now);
    // Without servers, the node has finished when all processes have ended.
    if (last && ranks_->has_servers() && !stopping_) finish_node();
    return;
  }
  ranks_->complete(&exit, now);
  // A program that handles the signal exits with 128 + its number.
  if (!exit.killed_by_us()) {
    signals_.on_rank_struck(exit.signal() ? exit.signal() : exit.code() - 128, now);
  }
  // Stopped for the next generation, which an exit that arrives late would end.
  if (exit.killed_by_us() && (host_lost_ || restarting_)) return;
  if (stopping_ || exit.server()) exit.set_replaceable(false);
  send(envelope(&wire::NodeMessage::mutable_exit, exit));
  if (exit.replaceable()) return;  // the host answers
  // The peer whose death caused this exit may not have been reported yet, possibly by this node.
  // Stop no rank before the verdict, so that its exit is not mistaken for our own kill.
  if (!stopping_ && (exit.signal() != 0 || exit.code() != kExitPeerLost)) stop(SIGTERM);
}

void Supervision::on_all_gone(const std::string& stuck, Time now) {
  if (gone_) return;
  gone_ = true;
  if (!stuck.empty()) {
    stuck_ = true;
    show(ShowLine::kError, "these processes cannot be killed and are left behind:\n" + stuck);
  }
  if (guardian_lost_ && host_lost_ && !verdict_) return leave_restart(guardian_loss());
  if (restarting_ && !verdict_ && !guardian_lost_) {
    if (stuck_) return leave_restart("processes are left");
    if (auto next = std::exchange(next_, std::nullopt)) return on(*next, now);
    return send(ready(*restarting_));
  }
  if (ranks_) finish_node();
  end_if_over();
}

ExitText Supervision::text_of(const RankExit& exit) const {
  return exit_text(style_, exit, ranks_ ? ranks_->node_rank() : -1);
}

std::string Supervision::guardian_loss() const { return hung_ ? kGuardianHung : kGuardianKilled; }

void Supervision::on(const GuardianLost& lost, Time) {
  if (guardian_lost_) return;
  guardian_lost_ = true;
  hung_ = lost.hung;
  if (gone_ && !restarting_) return;  // nothing was left to guard
  if (gone_ && host_lost_ && !verdict_) return leave_restart(guardian_loss());
  if (!gone_) {
    stopping_ = true;
    show(ShowLine::kError,
         hung_ ? "the guardian process of this node does not respond, perhaps because the log "
                 "folder hangs: killing it and its ranks"
               : "the guardian process of this node was killed: killing its ranks too");
  }
  if (ranks_ && !verdict_) send(failure(guardian_loss()));
}

// The other nodes would take a suspended one for lost.
void Supervision::on(const SuspendRequest& request, Time) {
  if (request.several_nodes) {
    return show(ShowLine::kWarning,
                "Ctrl-Z is ignored: the job runs on several nodes, which would lose this one; "
                "fleetrun stop ends it");
  }
  if (guardian_lost_ || stopping_ || signals_.any()) {
    return show(ShowLine::kWarning, "Ctrl-Z is ignored: the job is ending");
  }
  actions_.push_back(envelope(&wire::GuardianCommand::mutable_suspend));
}

void Supervision::on_ranks_suspended() {
  const bool ending = stopping_ || signals_.any();  // meanwhile
  if (!ending) return actions_.push_back(SuspendLauncher{});
  actions_.push_back(envelope(&wire::GuardianCommand::mutable_resume));
}

void Supervision::on(const LauncherContinued&, Time) {
  actions_.push_back(envelope(&wire::GuardianCommand::mutable_resume));
}

void Supervision::ask_to_stop(int signal, Grace grace, bool kill) {
  wire::StopRequest request = stop_request(signal, kill, grace);
  request.set_at_ns(steady_ns(signals_.own_at()));
  send(envelope(&wire::NodeMessage::mutable_stop, std::move(request)));
}

void Supervision::on(const wire::StopRequest& request, Time now) {
  const StopSignals::Meaning meaning = signals_.on_signal(request.signal(), now);
  if (request.kill() || meaning == StopSignals::Meaning::kKill) return kill_requested();
  if (meaning == StopSignals::Meaning::kStop) stop_requested(request.signal(), grace_of(request));
}

void Supervision::on(const StarterLost&, Time now) {
  if (signals_.any()) return;
  on(stop_request(SIGHUP), now);
}

void Supervision::stop_requested(int signal, Grace grace) {
  grace_ = grace;
  if (restarting_) {
    show(ShowLine::kWarning, signal_name(signal) + ": ending the job instead of restarting it");
    return ask_to_stop(signal, grace);
  }
  if (!ranks_ && !assigned_) return gone_ ? end(128 + signal) : kill_ranks();
  // Its ranks are being stopped, perhaps because the same pkill -f has ended one of them.
  if (verdict_ && !gone_) return signals_.has_struck_a_rank() ? void() : kill_requested();
  // Ranks here may have ended, or be about to, while those of other nodes run.
  ask_to_stop(signal, grace);
  if (!ranks_) {
    return show(ShowLine::kWarning,
                signal_name(signal) + ": ending the job before its ranks start");
  }
  if (stopping_ || gone_) return;
  show(ShowLine::kWarning,
       signal_name(signal) + ": stopping the ranks; send it again to kill them");
  stop(signal, grace);
}

void Supervision::kill_requested() {
  const int signal = signals_.own();
  // The other nodes have received the request already, or there are none.
  const bool asked = std::exchange(killing_, true) || restarting_ || !assigned_;
  if (gone_ && asked) return end(128 + signal);
  if (assigned_) ask_to_stop(signal, {}, true);
  if (!gone_) kill_ranks();
}

void Supervision::stop(int signal, Grace grace) {
  if (stopping_) return;
  stopping_ = true;
  StopCommand command;
  command.set_signal(signal);
  command.set_grace_ms(static_cast<int>(grace.value_or(own_grace_).count()));
  actions_.push_back(envelope(&wire::GuardianCommand::mutable_stop, std::move(command)));
}

void Supervision::end_if_over() {
  if (!gone_) return;
  if (verdict_) return end(exit_code_for(*verdict_));
  if (refused_) return end(*refused_);
  if (guardian_lost_ && !ranks_) return end(kExitNodeLost);
  if (!assigned_ && signals_.own() != 0) end(128 + signals_.own());
}

void Supervision::end(int exit_code) {
  if (ended_) return;
  ended_ = true;
  actions_.push_back(EndLauncher{exit_code});
}

}  // namespace fleet
