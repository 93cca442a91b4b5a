// JobState after the loss of a host: the conditions under which the next host continues.
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
  world_ = from.base;
  membership_.begin();
  restarts_ = Restarts(spec.restarts, world_->restarts, from.history);
  FailingOver failing{};
  failing.began = now;
  failing.due = now + std::max(spec.restarts.elastic_timeout, 2 * times.max_silence);
  failing.next_progress = now + times.first_progress;
  failing.lost = node_verdict(Verdict::NODE_LOST, from.lost);
  failing.lost.set_message(from.how);
  failing.generation_began = now - from.ran_for;
  failing.before = from.before;
  failing.base.nodes = failing.before ? static_cast<int>(failing.before->nodes.size()) : 0;
  phase_ = std::move(failing);
}

// Until this host knows that it may continue, nodes with another world should look for another
// host. Afterwards such a node is a returning node: its ranks are stopped, and it has no influence
// on the world from which this job continues.
std::optional<Error> JobState::check_survivor(const NodeInfo& info) const {
  if (info.last.generation == 0) return std::nullopt;  // a new node
  const bool failing = in<FailingOver>() != nullptr;
  if (failing ? info.last == world_->id() : !in<Forming>()) return std::nullopt;
  return Error(ErrorCode::kStale,
               "it was part of generation " + std::to_string(info.last.generation) +
                   " of another host; this host is at generation " + std::to_string(generation()),
               "node " + info.address, "start it again to take part");
}

void JobState::on_survivor_joined(FailingOver& failing, SessionId id, Time now) {
  const NodeInfo& info = membership_.members().at(id);
  if (info.last == world_->id()) {
    sessions_.at(id).node_rank = rank_of(*world_, info.address);
    if (info.committed == info.last) failing.base.nodes = 0;
    if (failing.before && info.committed == failing.before->id()) {
      const int rank = rank_of(*failing.before, info.address);
      if (rank >= 0) failing.base.accepted.insert(rank);
    }
  }
  complete_failover_if_ready(failing, now);
}

// Either all other nodes are here, or a majority is and the rest had time to notice the loss.
void JobState::complete_failover_if_ready(FailingOver& failing, Time now) {
  size_t here = 0;
  for (const auto& [id, session] : sessions_) here += session.member && session.node_rank >= 0;
  const bool all = here + 1 == world_->nodes.size();
  const bool waited = now >= failing.began + 2 * times_.max_silence;
  const bool enough = members_have_quorum() && failing.base.committed();
  if (enough && (all || waited)) return end_generation(failing.lost, now);
  if (!enough && (all || now >= failing.due)) return end_without_quorum(failing.lost, now);
  report_missing_nodes(failing, now);
}

}  // namespace fleet
