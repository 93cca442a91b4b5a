#include "node/supervision.h"

#include <signal.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "base/terminal_text.h"
#include "rendezvous/exit_code.h"

namespace fleet {
namespace {

constexpr char kGuardianKilled[] = "its guardian was killed";

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

wire::NodeMessage stop_request(int signal, Grace grace, bool kill = false) {
  wire::NodeMessage message;
  message.mutable_stop()->set_signal(signal);
  message.mutable_stop()->set_kill(kill);
  if (grace) message.mutable_stop()->set_grace_ms(static_cast<int>(grace->count()));
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
std::string tail_text(const RankExit& exit, bool colors) {
  const std::string log = exit.log_path().empty() ? "output" : "log " + exit.log_path();
  if (exit.tail().empty()) return "\n  its " + log + " is empty";
  std::string text = "\n  the last lines of its " + log + ":";
  const std::string shown = resolve_output(exit.tail(), colors);
  std::string_view tail = shown;
  while (true) {
    const size_t end = tail.find('\n');
    text += "\n    ";
    text += tail.substr(0, end);
    if (end == std::string_view::npos) return text;
    tail.remove_prefix(end + 1);
  }
}

// "\n  local rank 1 on node 1 (10.0.0.2), after 12.3 s": what the headline omits.
std::string detail_text(const Verdict& verdict) {
  const RankExit& exit = verdict.exit();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", static_cast<double>(exit.ran_for_ms()) / 1000);
  std::string text = "\n  local rank " + std::to_string(exit.local_rank()) + " on node " +
                     std::to_string(exit.node_rank()) + " (" +
                     node_label(verdict.node(), verdict.hostname()) + "), after " + seconds;
  if (!exit.cause().empty() && !exit.note().empty()) text += " (" + exit.note() + ")";
  if (verdict.restarts() == 0) return text;
  return text + "; it was restarted before, " + std::to_string(verdict.restarts()) +
         (verdict.restarts() == 1 ? " time" : " times");
}

}  // namespace

bool Supervision::on_assignment(const Assignment& assignment, std::vector<std::string> log_paths,
                                Time now) {
  const bool over = signals_.own() != 0 || guardian_lost_ || verdict_;
  if (over && !assignment_) return false;
  assignment_ = assignment;
  log_paths_ = std::move(log_paths);
  restarting_.reset();
  host_lost_ = false;
  if (over || signals_.any()) {  // the stop arrived before the start
    effects_.send(envelope(&wire::NodeMessage::mutable_finished));
    if (!gone_) effects_.kill_ranks();  // there are none, but the guardian must report it
    stopping_ = true;
    return false;
  }
  started_ = now;
  stopping_ = gone_ = false;
  trainers_ = assignment.node().trainers();
  // A node with servers only has finished when the other nodes have.
  if (trainers_ == 0) effects_.send(envelope(&wire::NodeMessage::mutable_finished));
  return true;
}

void Supervision::on_refusal(const Error& error) {
  effects_.report_error(error.what());
  const bool rendezvous = error.code() == ErrorCode::kTimeout || error.code() == ErrorCode::kStale;
  refused_ = rendezvous ? kExitRendezvous : launcher_exit_code(error.code());
  effects_.kill_ranks();
  end_if_over();
}

void Supervision::on_check_failed(const std::string& text) {
  effects_.report_error(text);
  refused_ = kExitPreflight;
  effects_.kill_ranks();
  end_if_over();
}

void Supervision::on_stop_command(const StopCommand& command, Time now) {
  signals_.on_stop_command(command.signal(), now);
  if (!assignment_) return;  // on_assignment() handles a stop before the start
  if (command.kill() && !gone_) effects_.kill_ranks();
  if (stopping_) return;
  effects_.warn("node " + std::to_string(command.node_rank()) + " (" + command.node() +
                ") received " + signal_name(command.signal()) + "; stopping the ranks");
  stop(command.signal(), grace_of(command));
}

void Supervision::on_stack_command(const StackCommand& command) {
  if (stopping_ || gone_ || guardian_lost_ || !assignment_)
    return effects_.send(envelope(&wire::NodeMessage::mutable_stacks));
  if (command.hang()) {
    effects_.warn("the job hangs (noticed on node " + std::to_string(command.node_rank()) +
                  "): collecting the stacks of all ranks");
  }
  effects_.collect_stacks();
}

void Supervision::on_progress(StepReport report) {
  if (stopping_ || !assignment_) return;
  const NodePlacement& node = assignment_->node();
  StepReport of_trainers;
  for (RankSteps& one : *report.mutable_ranks()) {
    if (node.is_server(one.local_rank())) continue;
    one.set_rank(node.rank_of(one.local_rank()));
    *of_trainers.add_ranks() = std::move(one);
  }
  if (of_trainers.ranks_size() > 0)
    effects_.send(envelope(&wire::NodeMessage::mutable_steps, std::move(of_trainers)));
}

void Supervision::on_rank_stalled(RankStall stall) {
  if (stopping_ || !assignment_) return;
  const NodePlacement& node = assignment_->node();
  stall.set_rank(node.rank_of(stall.local_rank()));
  stall.set_server(node.is_server(stall.local_rank()));
  stall.set_log_path(log_paths_.at(static_cast<size_t>(stall.local_rank())));
  effects_.send(envelope(&wire::NodeMessage::mutable_stall, std::move(stall)));
}

void Supervision::on_stacks(Stacks stacks) {
  if (!assignment_) return;
  const NodePlacement& node = assignment_->node();
  for (RankStack& stack : *stacks.mutable_ranks()) {
    stack.set_rank(node.rank_of(stack.local_rank()));
    stack.set_server(node.is_server(stack.local_rank()));
  }
  effects_.send(envelope(&wire::NodeMessage::mutable_stacks, std::move(stacks)));
}

void Supervision::on_restart_command(const RestartCommand& command) {
  if (verdict_ || refused_) return;
  effects_.warn(restart_text(command, colors_));
  restarting_ = command.generation();
  host_lost_ = false;
  // The lost host never received it.
  if (guardian_lost_) return effects_.send(failure(kGuardianKilled));
  if (signals_.own() != 0)
    effects_.send(stop_request(signals_.own(), grace_));  // it was lost with the host
  if (!gone_) return stop(SIGTERM);
  if (stuck_) return leave_restart("processes are left");
  effects_.send(ready(command.generation()));
}

void Supervision::on_host_lost(const HostLost& lost) {
  if (verdict_ || refused_) return;
  effects_.warn(lost.line);
  restarting_ = lost.generation;
  host_lost_ = true;
  if (!gone_) return stop(SIGTERM);
  if (guardian_lost_) leave_restart(kGuardianKilled);
}

// The other nodes continue without this one, or the job ends.
void Supervision::leave_restart(const std::string& why) {
  effects_.report_error("this node does not take part in the restart: " + why);
  end(kExitNodeLost);
}

void Supervision::on_verdict(const Verdict& verdict) {
  if (verdict_ || refused_) return;
  verdict_ = verdict;
  if (assignment_) effects_.record_verdict(verdict);
  // The user who stopped the job by a signal knows; other nodes report the stop command.
  if (!succeeded(verdict) && verdict.kind() != Verdict::STOPPED) {
    const World* world = assignment_ ? assignment_->world.get() : nullptr;
    effects_.print_verdict(verdict_text(verdict, world, colors_));
  }
  if (!assignment_) {
    effects_.kill_ranks();
  } else if (!gone_) {
    stop(SIGTERM);  // after a success: the parameter servers, which are no longer needed
  }
  end_if_over();
}

void Supervision::on_rank_not_started(int local_rank, const std::string& error, Time now) {
  RankExit exit;
  exit.set_local_rank(local_rank);
  exit.set_code(127);
  exit.set_note(error);
  exit.set_at_ns(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count());
  on_rank_ended(std::move(exit), now);
}

void Supervision::on_rank_ended(RankExit exit, Time now) {
  exit.set_ran_for_ms(
      std::chrono::duration_cast<std::chrono::milliseconds>(now - started_).count());
  const NodePlacement& node = assignment_->node();
  exit.set_server(node.is_server(exit.local_rank()));
  if (!failed(exit)) return exit.server() ? void() : trainer_ended();
  exit.set_rank(node.rank_of(exit.local_rank()));
  exit.set_node_rank(assignment_->node_rank);
  exit.set_log_path(log_paths_.at(static_cast<size_t>(exit.local_rank())));
  if (exit.killed_by_us()) exit.clear_note(), exit.clear_oom();
  if (!exit.killed_by_us() && exit.note().empty()) exit.set_note(signal_hint(exit.signal()));
  effects_.send(envelope(&wire::NodeMessage::mutable_exit, exit));
  // The peer whose death caused this exit may not have been reported yet, possibly by this node.
  // Stop no rank before the verdict, so that its exit is not mistaken for our own kill.
  if (!stopping_ && (exit.signal() != 0 || exit.code() != kExitPeerLost)) stop(SIGTERM);
}

void Supervision::trainer_ended() {
  // Without servers, the node has finished when all processes have ended.
  if (--trainers_ == 0 && assignment_->node().servers > 0 && !stopping_)
    effects_.send(envelope(&wire::NodeMessage::mutable_finished));
}

void Supervision::on_all_gone(const std::string& stuck) {
  if (gone_) return;
  gone_ = true;
  if (!stuck.empty()) {
    stuck_ = true;
    effects_.report_error("these processes cannot be killed and are left behind:\n" + stuck);
  }
  if (guardian_lost_ && host_lost_ && !verdict_) return leave_restart(kGuardianKilled);
  if (restarting_ && !verdict_ && !guardian_lost_) {
    if (stuck_) return leave_restart("processes are left");
    return effects_.send(ready(*restarting_));
  }
  if (assignment_) effects_.send(envelope(&wire::NodeMessage::mutable_finished));
  end_if_over();
}

void Supervision::on_guardian_lost() {
  if (guardian_lost_) return;
  guardian_lost_ = true;
  if (gone_ && !restarting_) return;  // nothing was left to guard
  if (gone_ && host_lost_ && !verdict_) return leave_restart(kGuardianKilled);
  if (!gone_) {
    stopping_ = true;
    effects_.report_error("the guardian process of this node was killed: killing its ranks too");
  }
  if (assignment_ && !verdict_) effects_.send(failure(kGuardianKilled));
}

void Supervision::on_signal(int signal, Time now) {
  switch (signals_.on_signal(signal, now)) {
    case StopSignals::Meaning::kCopy:
      return;
    case StopSignals::Meaning::kStop:
      return stop_requested(signal, {});
    case StopSignals::Meaning::kKill:
      return kill_requested();
  }
}

void Supervision::on_stop(const wire::StopJob& request, Time now) {
  const StopSignals::Meaning meaning = signals_.on_signal(request.signal(), now);
  if (request.kill() || meaning == StopSignals::Meaning::kKill) return kill_requested();
  if (meaning == StopSignals::Meaning::kStop) stop_requested(request.signal(), grace_of(request));
}

void Supervision::on_starter_lost(Time now) {
  if (!signals_.any()) on_signal(SIGHUP, now);
}

void Supervision::stop_requested(int signal, Grace grace) {
  grace_ = grace;
  if (restarting_) {
    effects_.warn(signal_name(signal) + ": ending the job instead of restarting it");
    return effects_.send(stop_request(signal, grace));
  }
  if (!assignment_) return gone_ ? end(128 + signal) : effects_.kill_ranks();
  if (verdict_ && !gone_) return kill_requested();  // its ranks are being stopped
  // Ranks here may have ended, or be about to, while those of other nodes run.
  effects_.send(stop_request(signal, grace));
  if (stopping_ || gone_) return;
  effects_.warn(signal_name(signal) + ": stopping the ranks; send it again to kill them");
  stop(signal, grace);
}

void Supervision::kill_requested() {
  const int signal = signals_.own();
  // The other nodes have received the request already, or there are none.
  const bool asked = std::exchange(killing_, true) || restarting_ || !assignment_;
  if (gone_ && asked) return end(128 + signal);
  if (assignment_) effects_.send(stop_request(signal, {}, true));
  if (!gone_) effects_.kill_ranks();
}

void Supervision::stop(int signal, Grace grace) {
  if (stopping_) return;
  stopping_ = true;
  effects_.stop_ranks(signal, grace);
}

void Supervision::end_if_over() {
  if (!gone_) return;
  if (verdict_) return end(exit_code_for(*verdict_));
  if (refused_) return end(*refused_);
  if (guardian_lost_ && !assignment_) return end(kExitNodeLost);
  if (!assignment_ && signals_.own() != 0) end(128 + signals_.own());
}

void Supervision::end(int exit_code) {
  if (ended_) return;
  ended_ = true;
  effects_.end(exit_code);
}

std::string verdict_text(const Verdict& verdict, const World* world, bool colors) {
  if (succeeded(verdict)) return {};
  const RankExit& exit = verdict.exit();
  const bool failed = verdict.kind() == Verdict::RANK_FAILED;
  if (!failed && verdict.kind() != Verdict::NO_PROGRESS) return verdict.message();
  if (!verdict.has_exit()) return verdict.message();
  if (!failed || !world) return verdict.message() + tail_text(exit, colors);
  const std::string kind = exit.server() ? "server" : "trainer";
  const int size = exit.server() ? world->servers : world->world_size;
  std::string text = headline(exit, size, static_cast<int>(world->nodes.size()));
  text += "\nABORT!!! Out of all " + std::to_string(size) + " " + kind + "s, the " + kind +
          " process with rank=[" + std::to_string(exit.rank()) +
          "] was aborted. Please check its log.";
  return text + detail_text(verdict) + tail_text(exit, colors);
}

std::string restart_text(const RestartCommand& command, bool colors) {
  std::string text = command.cause().message() + "\n  the job is restarted";
  if (command.restart() > 0) {
    text +=
        ": restart " + std::to_string(command.restart()) + " of " + std::to_string(command.of());
  }
  if (command.cause().kind() != Verdict::RANK_FAILED) return text;
  return text + tail_text(command.cause().exit(), colors);
}

}  // namespace fleet
