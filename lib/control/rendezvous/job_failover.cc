// JobState after the loss of a host: the conditions under which the next host continues.
#include "rendezvous/election.h"
#include "rendezvous/job_state.h"

namespace fleet {
namespace {

// The rank of the node with this address; -1 if it is not in the world.
int rank_of(const World& world, const std::string& address) {
  for (const NodePlacement& node : world.nodes) {
    if (node.address == address) return node.node_rank;
  }
  return -1;
}

}  // namespace

JobState::JobState(JobSpec spec, JobTimes times, std::string display_address, Time now,
                   const FailoverState& from)
    : JobState(spec, times, std::move(display_address), now) {
  phase_ = Phase::kFailingOver;
  world_ = from.base;
  generation_ = world_->generation;
  base_world_ = from.before;
  base_nodes_ = base_world_ ? static_cast<int>(base_world_->nodes.size()) : 0;
  membership_.begin();
  restarts_ = Restarts(spec.restarts, world_->restarts, from.history);
  generation_start_ = now - from.ran_for;
  Verdict lost = node_verdict(Verdict::NODE_LOST, from.lost);
  lost.set_message(from.how);
  lost_ = lost;
  cause_ = std::move(lost);
  gather_due_ = now + std::max(spec.restarts.elastic_timeout, 2 * times.max_silence);
}

// Until this host knows that it may continue, nodes with another world should look for another
// host. Afterwards such a node is a returning node: its ranks are stopped, and it has no influence
// on the world from which this job continues.
std::optional<Error> JobState::check_survivor(const NodeInfo& info) const {
  if (info.last.generation == 0) return std::nullopt;  // a new node
  if (phase_ == Phase::kFailingOver && info.last == world_->id()) return std::nullopt;
  if (phase_ != Phase::kFailingOver && phase_ != Phase::kForming) return std::nullopt;
  return Error(ErrorCode::kStale,
               "it was part of generation " + std::to_string(info.last.generation) +
                   " of another host; this host is at generation " + std::to_string(generation_),
               "node " + info.address, "start it again to take part");
}

void JobState::on_survivor_joined(SessionId id, Time now) {
  send(id, current_intervals());
  const NodeInfo& info = membership_.members().at(id);
  if (info.last == world_->id()) {
    sessions_.at(id).node_rank = rank_of(*world_, info.address);
    if (info.committed == info.last) base_nodes_ = 0;
    if (base_world_ && info.committed == base_world_->id()) {
      if (const int rank = rank_of(*base_world_, info.address); rank >= 0) base_ranks_.insert(rank);
    }
  }
  complete_failover_if_ready(now);
}

// Whether the last world sent counts. A node that accepted it follows no other world based on the
// preceding one, so a majority of that one decides.
bool JobState::is_committed() const {
  return base_nodes_ == 0 || has_quorum(base_nodes_, base_ranks_);
}

// Either all other nodes are here, or a majority is and the rest had time to notice the loss.
void JobState::complete_failover_if_ready(Time now) {
  size_t here = 0;
  for (const auto& [id, session] : sessions_) here += session.member && session.node_rank >= 0;
  const bool all = here + 1 == world_->nodes.size();
  const bool waited = now >= started_ + 2 * times_.max_silence;
  const bool enough = members_have_quorum() && is_committed();
  if (enough && (all || waited)) return end_generation(Verdict(*lost_), now);
  if (!enough && (all || now >= gather_due_)) return end_without_quorum(now);
  report_missing_nodes(now);
}

}  // namespace fleet
