#include "node/supervision.h"

#include <signal.h>

#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/number_text.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "diagnosis/cause/failure_cause.h"
#include "node/rank_stops.h"
#include "node/signal_copies.h"

namespace fleet {
namespace {

constexpr char kGuardianKilled[] = "its guardian was killed";
constexpr char kGuardianHung[] = "its guardian did not respond";
// Bytes of stacks and calls for the host: a message beyond gRPC's limit (grpc_setup.h) would end
// the stream of this node, and with it a healthy job.
constexpr size_t kMaxStackBytes = 8 << 20;

// Drops the descriptions of calls if there are too many; the numbers of each group stay.
void limit_size(Stacks* stacks) {
  if (stacks->ByteSizeLong() <= kMaxStackBytes) return;
  for (RankCollectives& rank : *stacks->mutable_collectives()) {
    for (GroupCalls& group : *rank.mutable_groups()) group.clear_calls();
  }
  if (stacks->ByteSizeLong() > kMaxStackBytes) stacks->clear_collectives();
}

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

// A hint that saves users from guessing.
std::string signal_hint(int signal) {
  switch (signal) {
    case SIGKILL:
      return "the kernel, out of memory (see dmesg), or another process's kill -9";
    case SIGBUS:
      return "often a full /dev/shm or disk under a memory map";
    case SIGABRT:
      return "it aborted itself: an assertion or an uncaught exception";
    default:
      return {};
  }
}

// "\n  the last lines of its log log/workerlog.0:\n    ..."
std::string tail_text(const RankExit& exit, const ExitText& wanted) {
  const std::string log = exit.log_path().empty() ? "output" : "log " + exit.log_path();
  if (exit.tail().empty()) return "\n  its " + log + " is empty";
  if (!wanted.last_lines) return {};
  std::string text = "\n  the last lines of its " + log + ":";
  const std::string shown = resolve_output(exit.tail(), wanted.colors);
  for (const std::string_view line : lines_of(shown)) text.append("\n    ").append(line);
  return text;
}

// Paddle's.
std::string abort_line(const RankExit& exit, int size) {
  const std::string kind = exit.server() ? "server" : "trainer";
  return "\nABORT!!! Out of all " + std::to_string(size) + " " + kind + "s, the " + kind +
         " process with rank=[" + std::to_string(exit.rank()) +
         "] was aborted. Please check its log.";
}

// "\n  local rank 1 on node 1 (10.0.0.2), after 12.3 s": what the headline omits.
std::string detail_text(const Verdict& verdict) {
  const RankExit& exit = verdict.exit();
  std::string text = "\n  local rank " + std::to_string(exit.local_rank()) + " on node " +
                     std::to_string(exit.node_rank()) + " (" +
                     node_label(verdict.node(), verdict.hostname()) + "), after " +
                     format_printf("%.1f s", static_cast<double>(exit.ran_for_ms()) / 1000);
  if (!exit.cause().empty() && !exit.note().empty()) text += " (" + exit.note() + ")";
  if (verdict.restarts() == 0) return text;
  return text + "; it was restarted before, " + std::to_string(verdict.restarts()) +
         (verdict.restarts() == 1 ? " time" : " times");
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
  if (over && !assignment_) return;
  // A late survivor: the other nodes did not wait for its ranks.
  if (restarting_ && !gone_ && !over) {
    next_ = std::move(begins);
    return;
  }
  assignment_ = std::move(begins.assignment);
  assigned_ = true;
  log_paths_.clear();
  shown_.clear();
  ended_well_.clear();
  constexpr int kBoth = wire::RankCommand::STANDARD_OUTPUT | wire::RankCommand::STANDARD_ERROR;
  for (const wire::RankCommand& rank : begins.ranks.ranks()) {
    log_paths_.push_back(rank.log_path());
    shown_.push_back((rank.shown_streams() & kBoth) == kBoth);
  }
  restarting_.reset();
  host_lost_ = false;
  if (over || signals_.any()) {  // the stop arrived before the start
    finish_node();
    if (!gone_) kill_ranks();  // there are none, but the guardian must report it
    stopping_ = true;
    return;
  }
  started_ = now;
  stopping_ = gone_ = false;
  trainers_ = trainers(assignment_->node());
  // A node with servers only has finished when the other nodes have.
  if (trainers_ == 0) finish_node();
  begins.ranks.set_generation(assignment_->generation());
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
  if (!assignment_ || (restarting_ && gone_)) return first ? stop_before_start(command) : void();
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
  if (stopping_ || gone_ || guardian_lost_ || !assignment_) return send_stacks({}, now);
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
  if (stopping_ || !assignment_) return;
  const wire::Node& node = assignment_->node();
  StepReport counted;
  for (RankSteps& one : *report.mutable_ranks()) {
    if (is_server(node, one.local_rank())) continue;
    one.set_rank(rank_of(node, one.local_rank()));
    *counted.add_ranks() = std::move(one);
  }
  for (wire::ServerReport& one : *report.mutable_servers()) {
    if (!is_server(node, one.local_rank())) continue;
    one.set_rank(rank_of(node, one.local_rank()));
    *counted.add_servers() = std::move(one);
  }
  if (counted.ranks_size() + counted.servers_size() > 0)
    send(envelope(&wire::NodeMessage::mutable_steps, std::move(counted)));
}

void Supervision::on_rank_stalled(RankStall stall) {
  if (stopping_ || !assignment_) return;
  const wire::Node& node = assignment_->node();
  stall.set_rank(rank_of(node, stall.local_rank()));
  stall.set_server(is_server(node, stall.local_rank()));
  stall.set_log_path(log_paths_.at(static_cast<size_t>(stall.local_rank())));
  send(envelope(&wire::NodeMessage::mutable_stall, std::move(stall)));
}

// It waits for an answer that no one can give.
void Supervision::on_rank_stopped(const wire::RankStopped& stopped) {
  if (!assignment_) return;
  const wire::Node& node = assignment_->node();
  const std::string kind = is_server(node, stopped.local_rank()) ? "server " : "rank ";
  show(ShowLine::kError,
       terminal_stop_text(kind + std::to_string(rank_of(node, stopped.local_rank())),
                          stopped.signal()));
}

void Supervision::on_stacks(Stacks stacks, Time now) {
  if (!assignment_) return;
  const wire::Node& node = assignment_->node();
  for (StackCluster& cluster : *stacks.mutable_clusters()) {
    for (RankStack& stack : *cluster.mutable_ranks()) {
      stack.set_rank(rank_of(node, stack.local_rank()));
      stack.set_server(is_server(node, stack.local_rank()));
    }
  }
  for (RankCollectives& calls : *stacks.mutable_collectives()) {
    calls.set_rank(rank_of(node, calls.local_rank()));
  }
  limit_size(&stacks);
  send_stacks(std::move(stacks), now);
}

void Supervision::send_stacks(Stacks stacks, Time now) {
  for (const Ended& one : ended_well_) {
    RankEnding& ending = *stacks.add_endings();
    ending.set_local_rank(one.local_rank);
    ending.set_ended(true);
    ending.set_ago_ms(std::chrono::duration_cast<std::chrono::milliseconds>(now - one.at).count());
    ending.set_error(last_error(resolve_output(one.tail), false));
  }
  for (RankEnding& ending : *stacks.mutable_endings()) {
    const wire::Node& node = assignment_->node();
    ending.set_rank(rank_of(node, ending.local_rank()));
    ending.set_server(is_server(node, ending.local_rank()));
    ending.set_log_path(log_paths_.at(static_cast<size_t>(ending.local_rank())));
  }
  send(envelope(&wire::NodeMessage::mutable_stacks, std::move(stacks)));
}

void Supervision::on_restart_command(const RestartCommand& command) {
  if (verdict_ || refused_) return;
  show(ShowLine::kWarning, restart_text(command, exit_text(command.cause().exit())));
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
  if (verdict_ || refused_ || restarting_ || !assignment_) return;
  if (command.generation() != assignment_->generation()) return;
  const RankExit& exit = command.exit();
  show(ShowLine::kWarning, replacement_text(command, exit_text(exit)));
  if (stopping_ || gone_ || exit.node_rank() != assignment_->node_rank) return;
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
  if (assignment_) actions_.push_back(RecordVerdict{verdict});
  // Once in the job.
  if (assignment_ && assignment_->node_rank == 0 && !verdict.bottleneck().causes().empty()) {
    show(ShowLine::kWarning, verdict.bottleneck().line());
  }
  // The user who stopped the job by a signal knows; other nodes have reported the stop command,
  // unless the job was not running.
  const bool known = verdict.kind() == Verdict::STOPPED && signals_.any();
  if (!succeeded(verdict) && !known) {
    const World* world = assignment_ ? assignment_->world.get() : nullptr;
    show(ShowLine::kVerdict, verdict_text(verdict, world, exit_text(verdict.exit())));
  }
  if (!assignment_) {
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
  exit.set_ran_for_ms(
      std::chrono::duration_cast<std::chrono::milliseconds>(now - started_).count());
  const wire::Node& node = assignment_->node();
  exit.set_server(is_server(node, exit.local_rank()));
  if (!failed(exit)) {
    ended_well_.push_back({exit.local_rank(), now, std::move(*exit.mutable_tail())});
    if (exit.server() || --trainers_ != 0) return;
    // Without servers, the node has finished when all processes have ended.
    return node.servers() > 0 && !stopping_ ? finish_node() : void();
  }
  exit.set_rank(rank_of(node, exit.local_rank()));
  exit.set_node_rank(assignment_->node_rank);
  exit.set_log_path(log_paths_.at(static_cast<size_t>(exit.local_rank())));
  exit.set_shown(shown_.at(static_cast<size_t>(exit.local_rank())));
  // A program that handles the signal exits with 128 + its number.
  if (!exit.killed_by_us()) struck_ = {exit.signal() ? exit.signal() : exit.code() - 128, now};
  if (exit.killed_by_us()) exit.clear_note(), exit.clear_oom();
  // A stage of a pipeline explains nothing yet.
  const bool unexplained = exit.note().empty() || exit.note().starts_with("stage ");
  if (!exit.killed_by_us() && !exit.oom() && unexplained) {
    const std::string hint = signal_hint(exit.signal());
    exit.set_note(exit.note() + (exit.note().empty() || hint.empty() ? "" : "; ") + hint);
  }
  // Stopped for the next generation, which an exit that arrives late would end.
  if (exit.killed_by_us() && (host_lost_ || restarting_)) return;
  if (stopping_ || exit.server()) exit.set_replaceable(false);
  send(envelope(&wire::NodeMessage::mutable_exit, exit));
  // The peer whose death caused this exit may not have been reported yet, possibly by this node.
  // Stop no rank before the verdict, so that its exit is not mistaken for our own kill.
  if (exit.replaceable()) return;  // the host answers
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
  if (assignment_) finish_node();
  end_if_over();
}

std::string Supervision::guardian_loss() const { return hung_ ? kGuardianHung : kGuardianKilled; }

ExitText Supervision::exit_text(const RankExit& exit) const {
  const bool own = assignment_ && exit.node_rank() == assignment_->node_rank;
  const bool here =
      style_.shown == ShownOutput::kOfAllNodes || (style_.shown == ShownOutput::kOfThisNode && own);
  return {style_.colors, !style_.brief, !(style_.brief && exit.shown() && here)};
}

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
  if (assignment_ && !verdict_) send(failure(guardian_loss()));
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
  request.set_at_ns(steady_ns(stop_requested_));
  send(envelope(&wire::NodeMessage::mutable_stop, std::move(request)));
}

void Supervision::on(const wire::StopRequest& request, Time now) {
  if (signals_.own() == 0) stop_requested_ = now;
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
  if (!assignment_ && !assigned_) return gone_ ? end(128 + signal) : kill_ranks();
  // Its ranks are being stopped, perhaps because the same pkill -f has ended one of them.
  if (verdict_ && !gone_) return has_struck_a_rank(signal) ? void() : kill_requested();
  // Ranks here may have ended, or be about to, while those of other nodes run.
  ask_to_stop(signal, grace);
  if (!assignment_) {
    return show(ShowLine::kWarning,
                signal_name(signal) + ": ending the job before its ranks start");
  }
  if (stopping_ || gone_) return;
  show(ShowLine::kWarning,
       signal_name(signal) + ": stopping the ranks; send it again to kill them");
  stop(signal, grace);
}

// Just before it came to this launcher.
bool Supervision::has_struck_a_rank(int signal) const {
  return struck_.signal == signal && stop_requested_ - struck_.at < SignalCopies::kWindow;
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
  if (guardian_lost_ && !assignment_) return end(kExitNodeLost);
  if (!assigned_ && signals_.own() != 0) end(128 + signals_.own());
}

void Supervision::end(int exit_code) {
  if (ended_) return;
  ended_ = true;
  actions_.push_back(EndLauncher{exit_code});
}

std::string verdict_text(const Verdict& verdict, const World* world, ExitText parts) {
  if (succeeded(verdict)) return {};
  const RankExit& exit = verdict.exit();
  const bool failed = verdict.kind() == Verdict::RANK_FAILED;
  if (!failed && verdict.kind() != Verdict::NO_PROGRESS) return verdict.message();
  if (!verdict.has_exit()) return verdict.message();
  if (!failed || !world) return verdict.message() + tail_text(exit, parts);
  const int size = exit.server() ? world->servers() : world->world_size();
  std::string text = headline(exit, size, world->nodes_size());
  if (parts.abort_line) text += abort_line(exit, size);
  return text + detail_text(verdict) + tail_text(exit, parts);
}

std::string restart_text(const RestartCommand& command, ExitText parts) {
  std::string text = command.cause().message() + "\n  the job is restarted";
  if (command.restart() > 0) {
    text +=
        ": restart " + std::to_string(command.restart()) + " of " + std::to_string(command.of());
  }
  if (command.cause().kind() != Verdict::RANK_FAILED) return text;
  return text + tail_text(command.cause().exit(), parts);
}

std::string replacement_text(const wire::ReplaceCommand& command, ExitText parts) {
  return command.message() + "\n  the job continues, and the rank is started again: restart " +
         std::to_string(command.used()) + " of " + std::to_string(command.of()) +
         tail_text(command.exit(), parts);
}

}  // namespace fleet
