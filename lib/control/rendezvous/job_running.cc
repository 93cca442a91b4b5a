// The phase in which the ranks run: which failure, loss or hang ends it.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "diagnosis/collective_waits.h"
#include "diagnosis/rank_endings.h"
#include "diagnosis/stacks.h"
#include "rendezvous/job_phases.h"

namespace fleet::phases {
namespace {

// Equal signals to launchers of several nodes within this time count as one.
constexpr std::chrono::seconds kOneSignal{1};
// For the debuggers: a hang is reported within 5 s, but a user who asks for stacks can wait.
constexpr std::chrono::milliseconds kHangStackLimit{4'000}, kMaxStackLimit{600'000};
// For the answers of the nodes after that.
constexpr std::chrono::milliseconds kStackAnswerTime{500};

}  // namespace

Running::Running(const Job& job)
    : began(job.now),
      root_cause(job.world->nodes_size() > 1 ? job.nodes.times().root_cause
                                             : single_node_times(job.nodes.times().root_cause)) {
  stragglers.begin(began);
  live.begin(began);
  bottleneck.begin(job.world->nodes_size(), began);
  for (const wire::Node& node : job.world->nodes()) unfinished_.insert(node.node_rank());
}

// News of ranks. What any phase expects is not for here: JobState handles it.
void Running::on_message(Job& job, SessionId session, int node_rank,
                         const wire::NodeMessage& message) {
  if (message.has_stack_request()) {
    return on_stack_request(job, session, node_rank, message.stack_request());
  }
  if (node_rank < 0) return;  // a spare has none
  switch (message.kind_case()) {
    case wire::NodeMessage::kExit:
      return on_rank_exited(job, message.exit(), node_rank);
    case wire::NodeMessage::kStall:
      return on_rank_stalled(job, node_rank, message.stall());
    case wire::NodeMessage::kStacks:
      return on_stacks(job, node_rank, message.stacks());
    case wire::NodeMessage::kSteps:
      return on_steps(job, node_rank, message.steps());
    case wire::NodeMessage::kSignal:
      return on_signal(job, node_rank, message.signal().signal());
    case wire::NodeMessage::kFinished:
      return on_finished(job, node_rank);
    case wire::NodeMessage::kJoin:
    case wire::NodeMessage::kLeave:
    case wire::NodeMessage::kHeartbeat:
    case wire::NodeMessage::kReady:
    case wire::NodeMessage::kAccept:
    case wire::NodeMessage::kStop:
    case wire::NodeMessage::kFailure:
    case wire::NodeMessage::kStackRequest:
    case wire::NodeMessage::kLiveRequest:
    case wire::NodeMessage::kTraceRequest:
    case wire::NodeMessage::kTraceAnswer:
    case wire::NodeMessage::KIND_NOT_SET:
      return;
  }
}

void Running::on_time(Job& job) {
  if (job.now >= root_cause_due(job)) return decide_root_cause(job);
  if (stacks_ && job.now >= stacks_->due) end_stacks(job);
  auto* running = job.in<Running>();  // unless the stacks have ended it
  if (running && running->scale_up_due && job.now >= *running->scale_up_due) running->scale_up(job);
}

void Running::on_rank_exited(Job& job, RankExit exit, int node_rank) {
  // Exits after a stop command are consequences of it.
  if (!failed(exit) || stop) return;
  exit.set_node_rank(node_rank);
  if (exit.replaceable() && replace(job, exit)) return;
  if (!exit.killed_by_us()) {
    return root_cause.on_rank_failed(std::move(exit), job.now, job.steady_now);
  }
  if (!killed_) killed_ = std::move(exit);
}

// Another failure may have the same cause, and ends the generation.
bool Running::replace(Job& job, const RankExit& exit) {
  const bool ending = root_cause.any() || lost || killed_ || (stacks_ && stacks_->hang);
  // A server's loss ends trainers with kExitPeerLost.
  const int code = exit.signal() == 0 ? exit.code() : 0;
  const bool final = code == kExitPeerLost || (code != 0 && code == job.spec().restarts.final_exit);
  if (ending || final || !job.restarts.replace()) return false;
  const wire::Node& node = job.world->nodes(exit.node_rank());
  wire::ReplaceCommand command;
  command.set_generation(job.generation());
  *command.mutable_exit() = exit;
  std::string& message = *command.mutable_message();
  message = describe(exit, node_label(node.address(), node.hostname()));
  if (!exit.cause().empty()) message += ": " + exit.cause();
  if (!exit.log_path().empty()) message += "; its log: " + exit.log_path();
  command.set_ordinal(++replaced_[exit.rank()]);
  command.set_used(job.restarts.counted());
  command.set_of(job.spec().restarts.max_replacements);
  job.replacements.add(command, job.now);
  job.nodes.broadcast(envelope(&wire::HostMessage::mutable_replace, std::move(command)),
                      JobNodes::To::kRanks);
  return true;
}

// An overdue node may be the cause of the reported failures: wait until it answers or is lost.
Time Running::root_cause_due(const Job& job) const {
  Time due = root_cause.due();
  if (due == Time::max() || root_cause.any_lost()) return due;
  const Time overdue = due - 3 * job.nodes.intervals().heartbeat_interval;
  for (const auto& [id, session] : job.nodes.sessions()) {
    const bool is_overdue = session.member && session.heard < overdue;
    if (is_overdue) due = std::max(due, job.nodes.silence_deadline(session));
  }
  return due;
}

void Running::decide_root_cause(Job& job) {
  std::optional<RankExit> first = root_cause.decide();
  first ? decide_failed(job, *std::move(first)) : job.end_generation(lost.value());
}

void Running::decide_failed(Job& job, RankExit exit) {
  Verdict verdict = job.node_verdict(Verdict::RANK_FAILED, exit.node_rank());
  std::string& message = *verdict.mutable_message();
  message = describe(exit, node_label(verdict.node(), verdict.hostname()));
  if (!exit.cause().empty()) message += ": " + exit.cause();
  if (!exit.log_path().empty()) message += "; its log: " + exit.log_path();
  *verdict.mutable_exit() = std::move(exit);
  job.end_generation(std::move(verdict));
}

void Running::on_finished(Job& job, int node_rank) {
  if (!unfinished_.contains(node_rank)) return;
  const std::string& address = job.world->nodes(node_rank).address();
  const std::string line = "node " + std::to_string(node_rank) + " (" + address + ") has finished";
  // Otherwise the verdict reports it.
  const bool well = !root_cause.any() && !stop && !killed_;
  if (well && job.config().nnodes() > 1) {
    job.nodes.send_to_host(peer_event(PeerEvent::FINISHED, node_rank, address, line));
  }
  on_node_finished(job, node_rank);
}

// One node fewer has running ranks; the last one ends the job.
void Running::on_node_finished(Job& job, int node_rank) {
  if (unfinished_.erase(node_rank) == 0 || !unfinished_.empty()) return;
  if (root_cause.any()) return decide_root_cause(job);
  Verdict verdict = job.node_verdict(Verdict::SUCCESS, -1);
  verdict.set_message("all " + std::to_string(job.world->world_size()) + " ranks have succeeded");
  if (stop) {
    verdict = job.stopped_verdict(stop->node_rank(), stop->signal(), "");
  } else if (killed_) {
    const int signal = killed_->signal() != 0 ? killed_->signal() : SIGTERM;
    verdict = job.stopped_verdict(killed_->node_rank(), signal, "");
  }
  job.decide(std::move(verdict));
}

void Running::on_node_lost(Job& job, SessionId session, const Verdict& verdict, Time since) {
  if (job.restarts_at_all()) job.nodes.membership().remove(session);
  const int rank = verdict.node_rank();
  // While its parameter servers still serve other nodes, a node has not finished.
  const bool serves = job.world->nodes(rank).servers() > 0;
  if (!serves && !unfinished_.contains(rank)) return;
  if (stop) {  // stopping already: the stop stays the verdict
    job.nodes.broadcast(peer_event(PeerEvent::LOST, rank, verdict.node(), verdict.message()));
    return on_node_finished(job, rank);
  }
  lost = verdict;
  root_cause.on_node_lost(rank, since);
  decide_root_cause(job);
}

void Running::on_stop(Job& job, int node_rank, const wire::StopRequest& request) {
  StopCommand command;
  command.set_signal(request.signal());
  command.set_node_rank(node_rank);
  command.set_node(job.world->nodes(node_rank).address());
  command.set_kill(request.kill());
  if (request.has_grace_ms()) command.set_grace_ms(request.grace_ms());
  if (!stop) stop = command;  // the first one decides the verdict; later ones may be harsher
  if (request.has_at_error_ns()) root_cause.on_stop(request.at_ns(), request.at_error_ns());
  job.nodes.broadcast(envelope(&wire::HostMessage::mutable_stop, std::move(command)),
                      JobNodes::To::kRanks);
}

// A signal to the launchers of all nodes (as a batch system sends it) is one signal.
void Running::on_signal(Job& job, int node_rank, int signal) {
  Job::UserSignal& last = job.user_signals[signal];
  const bool recent = !last.from.empty() && job.now - last.at < kOneSignal;
  if (recent && last.from.insert(node_rank).second) return;
  last = {job.now, {node_rank}};
  wire::HostMessage message;
  message.mutable_signal()->set_signal(signal);
  message.mutable_signal()->set_node_rank(node_rank);
  job.nodes.broadcast(std::move(message), JobNodes::To::kRanks);
}

void Running::on_steps(Job& job, int node_rank, StepReport report) {
  if (stop) return;
  for (RankSteps& rank : *report.mutable_ranks()) rank.set_node_rank(node_rank);
  for (RankUsage& rank : *report.mutable_usage()) rank.set_node_rank(node_rank);
  for (wire::ServerReport& one : *report.mutable_servers()) one.set_node_rank(node_rank);
  job.replacements.update(report, job.generation());
  live.update(report, job.now);
  if (job.history.wants(job.now)) job.history.add(live.report(job.now), job.now);
  if (auto line = bottleneck.update(report, job.now)) {
    job.nodes.send_to_host(peer_event(PeerEvent::BOTTLENECK, -1, {}, *std::move(line)));
  }
  for (std::string& line : stragglers.update(report, job.now)) {
    job.nodes.broadcast(peer_event(PeerEvent::STRAGGLER, node_rank, {}, std::move(line)));
  }
}

void Running::on_rank_stalled(Job& job, int node_rank, RankStall stall) {
  if (stop || (stacks_ && stacks_->hang)) return;
  // A collection that was requested just before serves the hang too.
  if (!stacks_) begin_stacks(job, node_rank, true, kHangStackLimit);
  stacks_->hang = std::move(stall);
  stacks_->node_rank = node_rank;
}

void Running::on_stack_request(Job& job, SessionId session, int node_rank,
                               const wire::StackRequest& request) {
  const std::chrono::milliseconds limit(request.limit_ms());
  if (!stacks_) {
    begin_stacks(job, node_rank, false, std::clamp(limit, kHangStackLimit, kMaxStackLimit));
  }
  requesters_.push_back(session);
}

void Running::on_stacks(Job& job, int node_rank, Stacks of_node) {
  if (stacks_ && stacks_->add(node_rank, std::move(of_node))) end_stacks(job);
}

// limit: for the debuggers.
void Running::begin_stacks(Job& job, int node_rank, bool hang, std::chrono::milliseconds limit) {
  const auto wait = std::max(job.nodes.times().stacks, limit + kStackAnswerTime);
  stacks_ = StackCollection{job.now + wait, job.nodes.ranks_here()};
  wire::HostMessage message;
  message.mutable_stacks()->set_node_rank(node_rank);
  message.mutable_stacks()->set_hang(hang);
  message.mutable_stacks()->set_limit_ms(static_cast<int>(limit.count()));
  job.nodes.broadcast(std::move(message), JobNodes::To::kRanks);
}

void Running::end_stacks(Job& job) {
  const StackCollection collection = *std::exchange(stacks_, std::nullopt);
  const wire::HostMessage message =
      envelope(&wire::HostMessage::mutable_report, collection.report());
  for (const SessionId asked : std::exchange(requesters_, {})) {
    if (job.nodes.find(asked)) job.nodes.send(asked, message);
  }
  if (!collection.hang || stop) return;
  if (root_cause.any()) return decide_root_cause(job);  // it explains the hang
  decide_hang(job, collection);
}

void Running::decide_hang(Job& job, const StackCollection& collection) {
  const Stacks clusters = cluster_stacks(collection.stacks);
  const std::vector<CollectiveWait> waits = find_collective_waits(collection.stacks);
  const RankStall& hang = *collection.hang;
  std::string why;
  RankExit exit = find_suspect(collection, clusters, waits, &why);
  Verdict verdict = job.node_verdict(Verdict::HANG, exit.node_rank());
  std::string& message = *verdict.mutable_message();
  message = "the job hangs: rank " + std::to_string(hang.rank()) + " on node " +
            std::to_string(collection.node_rank) +
            (hang.has_step() ? " has finished no step after step " + std::to_string(hang.step())
                             : " has written nothing and used no CPU time") +
            " for " + seconds_text(std::chrono::milliseconds(hang.quiet_for_ms())) +
            waits_text(waits) + endings_text(collection.stacks) + "\n  look at " +
            (exit.server() ? "server " : "rank ") + std::to_string(exit.rank()) + " (local rank " +
            std::to_string(exit.local_rank()) + ") on node " + std::to_string(exit.node_rank()) +
            " (" + node_label(verdict.node(), verdict.hostname()) + "): " + why +
            stacks_text(clusters);
  for (const int silent : collection.awaited) {
    message += "\n  node " + std::to_string(silent) + " sent no stacks";
  }
  for (std::string& note : flight_notes(collection.stacks)) {
    message += "\n  " + note;
    verdict.add_notes(std::move(note));
  }
  *verdict.mutable_exit() = std::move(exit);
  verdict.mutable_waits()->Assign(waits.begin(), waits.end());
  *verdict.mutable_endings() = collection.stacks.endings();
  job.end_generation(std::move(verdict));
}

// New nodes have joined and the wait is over: restarts the job with them.
void Running::scale_up(Job& job) {
  // A failure or a hang that awaits its verdict is not forgotten for the sake of newcomers.
  if (root_cause.any() || killed_ || (stacks_ && stacks_->hang)) return;
  scale_up_due.reset();
  // Ranks have returned: the job is about to end.
  for (const wire::Node& node : job.world->nodes()) {
    if (trainers(node) > 0 && !unfinished_.contains(node.node_rank())) return;
  }
  std::vector<std::string> newcomers;
  for (const auto& [id, info] : job.nodes.membership().members()) {
    if (job.nodes.find(id)->node_rank < 0) newcomers.push_back(info.node().address());
  }
  if (newcomers.empty() || stop) return;  // they have left again
  std::sort(newcomers.begin(), newcomers.end(), address_less);
  Verdict cause = job.node_verdict(Verdict::RESIZED, -1);
  const int nodes = job.world->nodes_size();
  const int more = std::min(static_cast<int>(newcomers.size()), job.config().nnodes() - nodes);
  cause.set_message("the job continues with " + counted(nodes + more, "node") +
                    " after these joined: " + list_some(newcomers));
  job.end_generation(std::move(cause));
}

}  // namespace fleet::phases
