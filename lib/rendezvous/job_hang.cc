// JobState: collects the nodes' stack reports, for a hang or on request.
#include <utility>

#include "rendezvous/job_state.h"
#include "rendezvous/seconds.h"
#include "rendezvous/stacks.h"

namespace fleet {

void JobState::rank_stalled(SessionId session, RankStall stall, Time now) {
  const Session* from = heard(session, now);
  if (!from || from->node_rank < 0 || phase_ != Phase::kRunning) return;
  if (stop_ || (look_ && look_->hang)) return;
  // A collection that was requested just before serves the hang too.
  if (!look_) start_look({from->node_rank, true}, now);
  look_->hang = std::move(stall);
  look_->node_rank = from->node_rank;
}

void JobState::stacks_wished(SessionId session, Time now) {
  const Session* from = heard(session, now);
  if (!from || phase_ != Phase::kRunning) return;
  if (!look_) start_look({from->node_rank, false}, now);
  look_->asked_by.push_back(session);
}

void JobState::start_look(const StackOrder& order, Time now) {
  look_.emplace();
  look_->due = now + times_.stacks;
  for (const auto& [id, other] : sessions_) {
    if (!other.member || other.node_rank < 0) continue;  // a spare has no ranks
    look_->awaited.insert(other.node_rank);
    say(id, RendezvousEvent(order));
  }
}

void JobState::stacks_came(SessionId session, std::vector<RankStack> stacks, Time now) {
  const Session* from = heard(session, now);
  if (!from || !look_ || look_->awaited.erase(from->node_rank) == 0) return;
  for (RankStack& stack : stacks) {
    stack.node_rank = from->node_rank;
    look_->stacks.push_back(std::move(stack));
  }
  if (look_->awaited.empty()) end_look(now);
}

void JobState::end_look(Time now) {
  const StackReport report{look_->stacks, {look_->awaited.begin(), look_->awaited.end()}};
  for (const SessionId asked : look_->asked_by) {
    if (sessions_.contains(asked)) say(asked, RendezvousEvent(report));
  }
  const Look look = *std::exchange(look_, std::nullopt);
  if (look.hang) decide_hang(look, now);
}

void JobState::decide_hang(const Look& look, Time now) {
  if (phase_ != Phase::kRunning || stop_) return;
  if (causes_.any()) return decide_cause(now);  // a failed rank explains it
  const std::vector<StackCluster> clusters = cluster_stacks(look.stacks);
  RankExit exit;
  exit.rank = look.hang->rank;
  exit.server = look.hang->server;
  exit.local_rank = look.hang->local_rank;
  exit.node_rank = look.node_rank;
  exit.log_path = look.hang->log_path;
  std::string why = "the first one noticed";
  if (const RankStack* odd = odd_one(clusters)) {
    const bool same = odd->rank == exit.rank && odd->server == exit.server;
    exit.rank = odd->rank;
    exit.server = odd->server;
    exit.local_rank = odd->local_rank;
    exit.node_rank = odd->node_rank;
    if (!same) exit.log_path.clear();  // the log's name is known only on its own node
    why = odd->state == 'T' ? "it is stopped" : "its stack differs from the others'";
  }
  Verdict verdict = node_verdict(VerdictKind::kHang, exit.node_rank);
  verdict.message =
      "the job hangs: rank " + std::to_string(look.hang->rank) + " on node " +
      std::to_string(look.node_rank) +
      (look.hang->step < 0
           ? " has written nothing and used no CPU time for " + seconds_text(look.hang->quiet_for)
           : " has finished no step after step " + std::to_string(look.hang->step) + " for " +
                 seconds_text(look.hang->quiet_for)) +
      "\n  look at " + (exit.server ? "server " : "rank ") + std::to_string(exit.rank) +
      " (local rank " + std::to_string(exit.local_rank) + ") on node " +
      std::to_string(exit.node_rank) + " (" + node_label(verdict.node, verdict.hostname) +
      "): " + why + stacks_text(clusters);
  for (const int silent : look.awaited) {
    verdict.message += "\n  node " + std::to_string(silent) + " sent no stacks";
  }
  verdict.exit = std::move(exit);
  epoch_over(std::move(verdict), now);
}

}  // namespace fleet
