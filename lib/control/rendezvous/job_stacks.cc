// JobState: collects the nodes' stack reports, for a hang or on request.
#include <utility>

#include "rendezvous/job_state.h"
#include "rendezvous/seconds.h"
#include "rendezvous/stacks.h"

namespace fleet {

void JobState::on_rank_stalled(SessionId session, RankStall stall, Time now) {
  const Session* from = touch_member(session, now);
  if (!from || from->node_rank < 0 || phase_ != Phase::kRunning) return;
  if (stop_ || (stack_collection_ && stack_collection_->hang)) return;
  // A collection that was requested just before serves the hang too.
  if (!stack_collection_) start_stack_collection(from->node_rank, true, now);
  stack_collection_->hang = std::move(stall);
  stack_collection_->node_rank = from->node_rank;
}

void JobState::on_stack_request(SessionId session, Time now) {
  const Session* from = touch_member(session, now);
  if (!from || phase_ != Phase::kRunning) return;
  if (!stack_collection_) start_stack_collection(from->node_rank, false, now);
  stack_collection_->requesters.push_back(session);
}

void JobState::start_stack_collection(int node_rank, bool hang, Time now) {
  StackCommand command;
  command.set_node_rank(node_rank);
  command.set_hang(hang);
  stack_collection_ = StackCollection{};
  stack_collection_->due = now + times_.stacks;
  for (const auto& [id, other] : sessions_) {
    if (!other.member || other.node_rank < 0) continue;  // a spare has no ranks
    stack_collection_->awaited.insert(other.node_rank);
    send(id, RendezvousEvent(command));
  }
}

void JobState::on_stacks(SessionId session, Stacks stacks, Time now) {
  const Session* from = touch_member(session, now);
  if (!from || !stack_collection_ || stack_collection_->awaited.erase(from->node_rank) == 0) return;
  for (RankStack& stack : *stacks.mutable_ranks()) {
    stack.set_node_rank(from->node_rank);
    *stack_collection_->stacks.add_ranks() = std::move(stack);
  }
  if (stack_collection_->awaited.empty()) end_stack_collection(now);
}

void JobState::end_stack_collection(Time now) {
  StackReport report;
  *report.mutable_stacks() = stack_collection_->stacks;
  for (const int node : stack_collection_->awaited) report.add_silent(node);
  for (const SessionId asked : stack_collection_->requesters) {
    if (sessions_.contains(asked)) send(asked, RendezvousEvent(report));
  }
  const StackCollection collection = *std::exchange(stack_collection_, std::nullopt);
  if (collection.hang) decide_hang(collection, now);
}

void JobState::decide_hang(const StackCollection& collection, Time now) {
  if (phase_ != Phase::kRunning || stop_) return;
  if (root_cause_.any()) return decide_root_cause(now);  // a failed rank explains it
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
