// JobState: collects the nodes' stack reports, for a hang or on request.
#include <utility>

#include "rendezvous/job_state.h"
#include "rendezvous/seconds.h"
#include "rendezvous/stacks.h"
#include "rendezvous/wire.h"

namespace fleet {

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
  for (RankStack& stack : *stacks.mutable_ranks()) {
    stack.set_node_rank(node_rank);
    *running.stacks->stacks.add_ranks() = std::move(stack);
  }
  if (running.stacks->awaited.empty()) end_stack_collection(running, now);
}

void JobState::end_stack_collection(Running& running, Time now) {
  const StackCollection collection = *std::exchange(running.stacks, std::nullopt);
  wire::HostMessage message;
  StackReport& report = *message.mutable_report();
  *report.mutable_stacks() = collection.stacks;
  share_frames(report.mutable_stacks());
  for (const int node : collection.awaited) report.add_silent(node);
  for (const SessionId asked : collection.requesters) {
    if (sessions_.contains(asked)) send(asked, message);
  }
  if (!collection.hang || running.stop) return;
  if (running.root_cause.any()) return decide_root_cause(running, now);  // it explains the hang
  decide_hang(collection, now);
}

void JobState::decide_hang(const StackCollection& collection, Time now) {
  const std::vector<StackCluster> clusters = cluster_stacks(collection.stacks);
  const RankStall& hang = *collection.hang;
  RankExit exit;
  exit.set_rank(hang.rank());
  exit.set_server(hang.server());
  exit.set_local_rank(hang.local_rank());
  exit.set_node_rank(collection.node_rank);
  exit.set_log_path(hang.log_path());
  std::string why = "the first one noticed";
  if (const RankStack* outlier = find_outlier(clusters)) {
    const bool same = outlier->rank() == exit.rank() && outlier->server() == exit.server();
    exit.set_rank(outlier->rank());
    exit.set_server(outlier->server());
    exit.set_local_rank(outlier->local_rank());
    exit.set_node_rank(outlier->node_rank());
    if (!same) exit.clear_log_path();  // the log's name is known only on its own node
    why = outlier->state() == 'T' ? "it is stopped" : "its stack differs from the others'";
  }
  Verdict verdict = node_verdict(Verdict::HANG, exit.node_rank());
  std::string& message = *verdict.mutable_message();
  message = "the job hangs: rank " + std::to_string(hang.rank()) + " on node " +
            std::to_string(collection.node_rank) +
            (hang.has_step() ? " has finished no step after step " + std::to_string(hang.step())
                             : " has written nothing and used no CPU time") +
            " for " + seconds_text(std::chrono::milliseconds(hang.quiet_for_ms())) +
            "\n  look at " + (exit.server() ? "server " : "rank ") + std::to_string(exit.rank()) +
            " (local rank " + std::to_string(exit.local_rank()) + ") on node " +
            std::to_string(exit.node_rank()) + " (" +
            node_label(verdict.node(), verdict.hostname()) + "): " + why + stacks_text(clusters);
  for (const int silent : collection.awaited) {
    message += "\n  node " + std::to_string(silent) + " sent no stacks";
  }
  *verdict.mutable_exit() = std::move(exit);
  end_generation(std::move(verdict), now);
}

}  // namespace fleet
