// JobState between two generations: the steps after one has ended and before the next begins.
#include <algorithm>

#include "rendezvous/election.h"
#include "rendezvous/job_state.h"
#include "rendezvous/seconds.h"

namespace fleet {
namespace {

std::string count(size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

EpochEnd JobState::end_of_epoch(const Verdict& verdict, Time now) const {
  EpochEnd end;
  end.epoch = epoch_;
  end.nnodes = static_cast<int>(world_->nodes.size());
  end.world_size = world_->world_size;
  end.kind = verdict.kind;
  end.message = verdict.message;
  end.ran_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - epoch_began_);
  end.step = pace_.step();
  return end;
}

// "; the job had been restarted 3 times"; "" if it was never restarted.
std::string JobState::after_restarts() const {
  if (restarts_.used() == 0) return {};
  return "; the job had been restarted " + count(static_cast<size_t>(restarts_.used()), "time");
}

bool JobState::quorum_is_here() const {
  std::set<int> here;
  for (const auto& [id, session] : sessions_) {
    if (session.member && session.node_rank >= 0) here.insert(session.node_rank);
  }
  return has_quorum(static_cast<int>(world_->nodes.size()), here);
}

// The remaining nodes are not a majority of the last generation's.
void JobState::give_up_divided(Time now) {
  Verdict verdict = lost_ ? *lost_ : cause_;
  verdict.message += "; the remaining nodes are not a majority of the last generation's " +
                     std::to_string(world_->nodes.size()) +
                     "; the job does not continue without one, because the other nodes might";
  decide(std::move(verdict), now);
}

void JobState::epoch_over(Verdict cause, Time now) {
  if (verdict_) return;
  if (spec().restarts.max_restarts == 0 || stop_) return decide(std::move(cause), now);
  EpochEnd end = end_of_epoch(cause, now);
  const Restarts::Next next = restarts_.ended(end);
  phase_ = Phase::kStopping;
  if (next == Restarts::Next::kFail) {
    cause.message += after_restarts();
    return decide(std::move(cause), now);
  }
  if (next == Restarts::Next::kNoProgress) {
    cause.kind = VerdictKind::kNoProgress;
    cause.message =
        "the job was restarted " + count(static_cast<size_t>(restarts_.in_vain()), "time") +
        " without progress (--no_progress_restarts):" + history_text(restarts_.history());
    return decide(std::move(cause), now);
  }
  cause_ = std::move(cause);
  if (!quorum_is_here()) return give_up_divided(now);
  awaited_.clear();
  causes_.clear(), look_.reset(), killed_.reset(), grow_due_.reset();
  const bool resized = cause_.kind == VerdictKind::kResized;
  const RestartOrder order{epoch_, cause_, std::move(end), resized ? 0 : restarts_.used(),
                           spec().restarts.max_restarts};
  for (const auto& [id, session] : sessions_) {
    if (!session.member) continue;
    if (session.node_rank < 0) {
      say(id, JoinProgress{"generation " + std::to_string(epoch_) + " is over: " + cause_.message});
    } else {
      awaited_.insert(id);
      say(id, order);
    }
  }
}

void JobState::ready(SessionId session, int epoch, Time now) {
  if (!heard(session, now) || phase_ != Phase::kStopping || epoch != epoch_) return;
  if (awaited_.erase(session) > 0 && awaited_.empty()) gather(now);
}

void JobState::gather(Time now) {
  phase_ = Phase::kGathering;
  gather_due_ = now + spec().restarts.wait;
  next_progress_ = now + times_.first_progress;
  start_if_complete(now);
}

void JobState::start_if_complete(Time now) {
  if (phase_ == Phase::kForming) {
    if (membership_.complete()) return propose(now);
    gather_due_ = now + spec().restarts.wait;  // others may be on their way
    return;
  }
  if (phase_ != Phase::kGathering) return;
  if (!quorum_is_here()) return give_up_divided(now);
  if (membership_.enough()) propose(now);
}

void JobState::advance_between(Time now) {
  if (now < gather_due_) return tell_who_is_missing(now);
  Verdict verdict = lost_ ? *lost_ : cause_;
  verdict.message += "; " + count(static_cast<size_t>(joined()), "node") + " left of the " +
                     std::to_string(spec().fewest()) + " that it needs; no other joined within " +
                     seconds_text(spec().restarts.wait) + " (--elastic_timeout)";
  decide(std::move(verdict), now);
}

// Sends the world of the next generation. The first generation begins at once. A later one begins
// when all its nodes know it: from then on they follow no other host that would continue from the
// generation before.
void JobState::propose(Time now) {
  const std::shared_ptr<const World> base = world_;
  const std::shared_ptr<World> next = membership_.place(++epoch_, base.get());
  next->restarts = restarts_.used();
  world_ = next;
  membership_.begin();
  std::map<std::string, int> ranks;
  for (const NodePlacement& node : world_->nodes) ranks[node.address] = node.node_rank;
  awaited_.clear(), base_ranks_.clear();
  lost_.reset();
  base_nodes_ = base ? static_cast<int>(base->nodes.size()) : 0;
  base_world_.reset();
  unfinished_ = static_cast<int>(world_->nodes.size());
  for (const auto& [id, info] : membership_.members()) {
    Session& session = sessions_.at(id);
    const auto rank = ranks.find(info.address);
    session.base_rank = session.node_rank;
    session.node_rank = rank == ranks.end() ? -1 : rank->second;
    session.finished = false;
    if (session.node_rank >= 0) awaited_.insert(id);
    if (!base) tell_skew(id, info);
    if (session.node_rank >= 0) say(id, Assignment{world_, session.node_rank, {}});
  }
  phase_ = Phase::kAgreeing;
  if (!base) begin_epoch(now);
}

void JobState::accepted(SessionId id, int epoch, Time now) {
  const Session* session = heard(id, now);
  if (!session || phase_ != Phase::kAgreeing || epoch != epoch_ || awaited_.erase(id) == 0) return;
  if (session->base_rank >= 0) base_ranks_.insert(session->base_rank);
  if (awaited_.empty()) begin_epoch(now);
}

void JobState::begin_epoch(Time now) {
  if (!counts_here()) return give_up_divided(now);
  phase_ = Phase::kRunning;
  epoch_began_ = now;
  pace_.begin(now);
  causes_ = Causes(world_->nodes.size() > 1 ? times_.causes : within_a_node(times_.causes));
  if (lost_) return epoch_over(Verdict(*lost_), now);  // lost before the generation began
  for (const auto& [id, session] : sessions_) {
    if (!session.member) continue;
    if (session.node_rank >= 0) {
      if (epoch_ > 1) say(id, Start{epoch_});
    } else if (epoch_ == 1 || is_short()) {  // it joined meanwhile
      tell_newcomer(id, now);
    } else {
      say(id, Assignment{world_, -1, {}});
    }
  }
}

void JobState::gone_between(SessionId id, const Verdict& lost, Time now) {
  membership_.remove(id);
  awaited_.erase(id);
  if (phase_ != Phase::kSucceeding) lost_ = lost;
  say_all(PeerEvent{PeerEvent::Kind::kLost, lost.node_rank, lost.node, lost.message});
  if (phase_ == Phase::kSucceeding) return;
  if (phase_ == Phase::kGathering) return start_if_complete(now);
  if (phase_ == Phase::kStopping && !quorum_is_here()) return give_up_divided(now);
  if (!awaited_.empty()) return;
  phase_ == Phase::kStopping ? gather(now) : begin_epoch(now);
}

// Whether the job runs with fewer nodes than it may.
bool JobState::is_short() const { return static_cast<int>(world_->nodes.size()) < spec().nnodes; }

// Informs a node that joined while the job runs, or that exceeds the number of nodes to run.
void JobState::tell_newcomer(SessionId id, Time now) {
  if (!world_) return;
  const auto& own = sessions_.at(id);
  if (own.node_rank >= 0) return;
  const std::string job = "the job runs with " + count(world_->nodes.size(), "node") +
                          " (generation " + std::to_string(epoch_) + ")";
  const std::string address = membership_.members().at(id).address;
  if (phase_ == Phase::kRunning && is_short()) {
    grow_due_ = now + spec().restarts.wait;
    const std::string when = seconds_text(spec().restarts.wait) + " (--elastic_timeout)";
    say(id, JoinProgress{job + "; it restarts with this node in " + when});
    say_host(JoinProgress{"node " + address + " has joined; the job restarts with it in " + when});
  } else if (phase_ != Phase::kGathering) {
    say(id, JoinProgress{job + "; this node waits as a spare"});
    say_host(PeerEvent{PeerEvent::Kind::kFinished, -1, address,
                       "node " + address + " waits as a spare"});
  }
  if (phase_ == Phase::kRunning) say(id, Assignment{world_, -1, {}});
}

// New nodes have joined and the wait is over: restarts the job with them.
void JobState::grow(Time now) {
  grow_due_.reset();
  std::vector<std::string> newcomers;
  for (const auto& [id, info] : membership_.members()) {
    if (sessions_.at(id).node_rank < 0) newcomers.push_back(info.address);
  }
  if (newcomers.empty() || stop_) return;  // they have left again
  std::sort(newcomers.begin(), newcomers.end(), address_less);
  Verdict cause = node_verdict(VerdictKind::kResized, -1);
  const int more = std::min(static_cast<int>(newcomers.size()),
                            spec().nnodes - static_cast<int>(world_->nodes.size()));
  cause.message = "the job continues with " +
                  count(world_->nodes.size() + static_cast<size_t>(more), "node") +
                  " after these joined: " + list_some(newcomers);
  epoch_over(std::move(cause), now);
}

}  // namespace fleet
