// JobState: which failure, loss or hang ends a job or its generation.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "diagnosis/collective_waits.h"
#include "diagnosis/stacks.h"
#include "rendezvous/job_state.h"
#include "transport/control_messages.h"

namespace fleet {
namespace {

// Makes `exit` name another rank. The log's name is known only on its own node.
template <typename Message>
void name_rank(const Message& named, bool server, RankExit* exit) {
  if (exit->rank() != named.rank() || exit->server() != server) exit->clear_log_path();
  exit->set_rank(named.rank());
  exit->set_server(server);
  exit->set_local_rank(named.local_rank());
  exit->set_node_rank(named.node_rank());
}

// The rank to look at: a stopped one, else the one that the others wait for in a collective, else
// the one with another stack, else the first that was noticed.
RankExit suspect_of(const JobPhases::StackCollection& collection, const Stacks& clusters,
                    const std::vector<CollectiveWait>& waits, std::string* why) {
  const RankStall& hang = *collection.hang;
  RankExit exit;
  exit.set_rank(hang.rank());
  exit.set_server(hang.server());
  exit.set_local_rank(hang.local_rank());
  exit.set_node_rank(collection.node_rank);
  exit.set_log_path(hang.log_path());
  *why = "the first one noticed";
  const RankStack* outlier = find_outlier(clusters);
  const std::optional<int> awaited = rank_waited_for(waits);
  const auto& ranks = collection.stacks.collectives();
  const auto found = std::find_if(ranks.begin(), ranks.end(), [&](const RankCollectives& calls) {
    return awaited && calls.rank() == *awaited;
  });
  if (found != ranks.end() && (!outlier || !is_stopped(*outlier))) {
    name_rank(*found, false, &exit);
    *why = "the others wait for it";
  } else if (outlier) {
    name_rank(*outlier, outlier->server(), &exit);
    *why = is_stopped(*outlier) ? "it is stopped" : "its stack differs from the others'";
  }
  return exit;
}

// A report that does not fit a node's queue (service.cc) would end its stream, and so a healthy
// job.
constexpr size_t kMaxReportBytes = 3 << 20;

// Leaves out the frames of the rarest stacks until it fits.
void limit_size(StackReport* report) {
  size_t size = report->ByteSizeLong();
  auto& clusters = *report->mutable_stacks()->mutable_clusters();
  int left_out = 0;
  for (int i = clusters.size() - 1; i >= 0 && size > kMaxReportBytes; --i, ++left_out) {
    StackCluster& cluster = clusters[i];
    const size_t before = cluster.ByteSizeLong();
    cluster.clear_frames();
    cluster.clear_python_frames();
    cluster.set_missing("left out, because the report is too large");
    size -= before - std::min(before, cluster.ByteSizeLong());
  }
  if (left_out == 0) return;
  report->add_notes("the report is too large: the rarest stacks are left out (" +
                    std::to_string(left_out) + ")");
}

}  // namespace

Verdict JobState::node_verdict(Verdict::Kind kind, int node_rank) const {
  Verdict verdict;
  verdict.set_kind(kind);
  verdict.set_generation(generation());
  if (node_rank >= 0) verdict.set_node_rank(node_rank);
  if (world_ && node_rank >= 0) {
    verdict.set_node(world_->nodes(node_rank).address());
    verdict.set_hostname(world_->nodes(node_rank).hostname());
  }
  return verdict;
}

void JobState::decide(Verdict verdict, Time now) {
  if (in<Ended>()) return;
  const auto* running = in<Running>();
  const auto bottleneck = running ? running->bottleneck.overall() : std::nullopt;
  if (bottleneck) *verdict.mutable_bottleneck() = *bottleneck;
  if (!restarts_.history().empty()) {
    if (in<Running>()) restarts_.record(generation_result(verdict, now));
    verdict.set_restarts(restarts_.used());
    verdict.mutable_history()->Assign(restarts_.history().begin(), restarts_.history().end());
  }
  phase_ = Ended{verdict.message(), verdict};
  broadcast(envelope(&wire::HostMessage::mutable_verdict, std::move(verdict)));
}

void JobState::on_rank_exited(Running& running, int node_rank, RankExit exit, Time now) {
  // Exits after a stop command are consequences of it.
  if (!failed(exit) || running.stop) return;
  exit.set_node_rank(node_rank);
  if (!exit.killed_by_us()) return running.root_cause.on_rank_failed(std::move(exit), now);
  if (!running.killed) running.killed = std::move(exit);
}

// An overdue node may be the cause of the reported failures: wait until it answers or is given up.
JobState::Time JobState::root_cause_due(const Running& running) const {
  Time due = running.root_cause.due();
  if (due == Time::max() || running.root_cause.any_lost()) return due;
  const Time overdue = due - 3 * current_intervals().heartbeat_interval;
  for (const auto& [id, session] : sessions_) {
    const FailureDetector& detector = session.failure_detector;
    const bool is_overdue = session.member && detector.last_received() < overdue;
    if (is_overdue) due = std::max(due, detector.deadline());
  }
  return due;
}

void JobState::decide_root_cause(Running& running, Time now) {
  std::optional<RankExit> failed = running.root_cause.decide();
  failed ? decide_failed(*std::move(failed), now) : end_generation(running.lost.value(), now);
}

void JobState::decide_failed(RankExit exit, Time now) {
  Verdict verdict = node_verdict(Verdict::RANK_FAILED, exit.node_rank());
  std::string& message = *verdict.mutable_message();
  message = describe(exit, node_label(verdict.node(), verdict.hostname()));
  if (!exit.cause().empty()) message += ": " + exit.cause();
  if (!exit.log_path().empty()) message += "; its log: " + exit.log_path();
  *verdict.mutable_exit() = std::move(exit);
  end_generation(std::move(verdict), now);
}

void JobState::on_finished(Running& running, int rank, Time now) {
  if (!running.unfinished.contains(rank)) return;
  const std::string& address = world_->nodes(rank).address();
  const std::string line = "node " + std::to_string(rank) + " (" + address + ") has finished";
  // Otherwise the verdict reports it.
  const bool well = !running.root_cause.any() && !running.stop && !running.killed;
  if (well && config().nnodes() > 1) {
    send_to_host(peer_event(PeerEvent::FINISHED, rank, address, line));
  }
  on_node_finished(running, rank, now);
}

// One node fewer has running ranks; the last one ends the job.
void JobState::on_node_finished(Running& running, int node_rank, Time now) {
  if (running.unfinished.erase(node_rank) == 0 || !running.unfinished.empty()) return;
  if (running.root_cause.any()) return decide_root_cause(running, now);
  Verdict verdict = node_verdict(Verdict::SUCCESS, -1);
  verdict.set_message("all " + std::to_string(world_->world_size()) + " ranks have succeeded");
  if (running.stop) {
    verdict = stopped_verdict(running.stop->node_rank(), running.stop->signal(), "");
  } else if (running.killed) {
    const int signal = running.killed->signal() != 0 ? running.killed->signal() : SIGTERM;
    verdict = stopped_verdict(running.killed->node_rank(), signal, "");
  }
  decide(std::move(verdict), now);
}

// `more`: follows the node, or replaces it if it has no rank.
Verdict JobState::stopped_verdict(int rank, int signal, const std::string& more) const {
  Verdict verdict = node_verdict(Verdict::STOPPED, rank);
  verdict.set_signal(signal);
  std::string& message = *verdict.mutable_message();
  message = "stopped by " + signal_name(signal) + " to the launcher of node";
  if (rank >= 0) message += " " + std::to_string(rank) + " (" + verdict.node() + ")";
  message += more;
  return verdict;
}

void JobState::on_rank_stalled(Running& running, int node_rank, RankStall stall, Time now) {
  if (running.stop || (running.stacks && running.stacks->hang)) return;
  // A collection that was requested just before serves the hang too.
  if (!running.stacks) start_stack_collection(running, node_rank, true, now);
  running.stacks->hang = std::move(stall);
  running.stacks->node_rank = node_rank;
}

void JobState::on_stack_request(SessionId session, Time now) {
  auto* running = in<Running>();
  if (!running) return;
  const int node_rank = sessions_.at(session).node_rank;
  if (!running->stacks) start_stack_collection(*running, node_rank, false, now);
  running->stacks->requesters.push_back(session);
}

void JobState::start_stack_collection(Running& running, int node_rank, bool hang, Time now) {
  running.stacks = StackCollection{now + times_.stacks};
  for (const auto& [id, other] : sessions_) {
    if (other.member && other.node_rank >= 0) running.stacks->awaited.insert(other.node_rank);
  }
  wire::HostMessage message;
  message.mutable_stacks()->set_node_rank(node_rank);
  message.mutable_stacks()->set_hang(hang);
  broadcast(std::move(message), To::kRanks);
}

void JobState::on_stacks(Running& running, int node_rank, Stacks stacks, Time now) {
  if (!running.stacks || running.stacks->awaited.erase(node_rank) == 0) return;
  for (StackCluster& cluster : *stacks.mutable_clusters()) {
    for (RankStack& stack : *cluster.mutable_ranks()) stack.set_node_rank(node_rank);
  }
  for (RankCollectives& calls : *stacks.mutable_collectives()) calls.set_node_rank(node_rank);
  running.stacks->stacks.MergeFrom(stacks);
  if (running.stacks->awaited.empty()) end_stack_collection(running, now);
}

void JobState::end_stack_collection(Running& running, Time now) {
  const StackCollection collection = *std::exchange(running.stacks, std::nullopt);
  wire::HostMessage message;
  StackReport& report = *message.mutable_report();
  *report.mutable_stacks() = cluster_stacks(collection.stacks);
  for (const int node : collection.awaited) report.add_silent(node);
  const std::vector<CollectiveWait> waits = find_collective_waits(collection.stacks);
  report.mutable_waits()->Assign(waits.begin(), waits.end());
  const std::vector<std::string> notes = flight_notes(collection.stacks);
  report.mutable_notes()->Assign(notes.begin(), notes.end());
  limit_size(&report);
  for (const SessionId asked : collection.requesters) {
    if (sessions_.contains(asked)) send(asked, message);
  }
  if (!collection.hang || running.stop) return;
  if (running.root_cause.any()) return decide_root_cause(running, now);  // it explains the hang
  decide_hang(collection, waits, now);
}

void JobState::decide_hang(const StackCollection& collection,
                           const std::vector<CollectiveWait>& waits, Time now) {
  const Stacks clusters = cluster_stacks(collection.stacks);
  const RankStall& hang = *collection.hang;
  std::string why;
  RankExit exit = suspect_of(collection, clusters, waits, &why);
  Verdict verdict = node_verdict(Verdict::HANG, exit.node_rank());
  std::string& message = *verdict.mutable_message();
  message = "the job hangs: rank " + std::to_string(hang.rank()) + " on node " +
            std::to_string(collection.node_rank) +
            (hang.has_step() ? " has finished no step after step " + std::to_string(hang.step())
                             : " has written nothing and used no CPU time") +
            " for " + seconds_text(std::chrono::milliseconds(hang.quiet_for_ms())) +
            waits_text(waits) + "\n  look at " + (exit.server() ? "server " : "rank ") +
            std::to_string(exit.rank()) + " (local rank " + std::to_string(exit.local_rank()) +
            ") on node " + std::to_string(exit.node_rank()) + " (" +
            node_label(verdict.node(), verdict.hostname()) + "): " + why + stacks_text(clusters);
  for (const int silent : collection.awaited) {
    message += "\n  node " + std::to_string(silent) + " sent no stacks";
  }
  for (std::string& note : flight_notes(collection.stacks)) {
    message += "\n  " + note;
    verdict.add_notes(std::move(note));
  }
  *verdict.mutable_exit() = std::move(exit);
  verdict.mutable_waits()->Assign(waits.begin(), waits.end());
  end_generation(std::move(verdict), now);
}

}  // namespace fleet
