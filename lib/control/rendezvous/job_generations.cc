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

// Every restart would meet the same input.
bool is_final(const Verdict& cause, const RestartPolicy& policy) {
  return cause.kind() == Verdict::RANK_FAILED && policy.final_exit != 0 &&
         cause.exit().signal() == 0 && cause.exit().code() == policy.final_exit;
}

}  // namespace

GenerationResult JobState::generation_result(const Verdict& verdict, Time now) const {
  GenerationResult end;
  end.set_generation(generation_);
  end.set_nnodes(static_cast<int>(world_->nodes.size()));
  end.set_world_size(world_->world_size);
  end.set_kind(verdict.kind());
  end.set_message(verdict.message());
  const auto ran_for =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - generation_start_);
  end.set_ran_for_ms(ran_for.count());
  if (const auto step = stragglers_.step()) end.set_step(*step);
  return end;
}

// "; the job had been restarted 3 times"; "" if it was never restarted.
std::string JobState::restart_note() const {
  if (restarts_.used() == 0) return {};
  return "; the job had been restarted " + count(static_cast<size_t>(restarts_.used()), "time");
}

bool JobState::members_have_quorum() const {
  std::set<int> here;
  for (const auto& [id, session] : sessions_) {
    if (session.member && session.node_rank >= 0) here.insert(session.node_rank);
  }
  return has_quorum(static_cast<int>(world_->nodes.size()), here);
}

// The remaining nodes are not a majority of the last generation's.
void JobState::end_without_quorum(Time now) {
  Verdict verdict = lost_ ? *lost_ : cause_;
  *verdict.mutable_message() +=
      "; the remaining nodes are not a majority of the last generation's " +
      std::to_string(world_->nodes.size()) +
      "; the job does not continue without one, because the other nodes might";
  decide(std::move(verdict), now);
}

void JobState::end_generation(Verdict cause, Time now) {
  if (verdict_) return;
  if (spec().restarts.max_restarts == 0 || stop_) return decide(std::move(cause), now);
  if (is_final(cause, spec().restarts)) {
    *cause.mutable_message() += "; not restarted, because exit code " +
                                std::to_string(cause.exit().code()) +
                                " means that the job's input is wrong";
    return decide(std::move(cause), now);
  }
  GenerationResult end = generation_result(cause, now);
  const Restarts::Next next = restarts_.on_generation_end(end);
  phase_ = Phase::kStopping;
  if (next == Restarts::Next::kFail) {
    *cause.mutable_message() += restart_note();
    return decide(std::move(cause), now);
  }
  if (next == Restarts::Next::kNoProgress) {
    cause.set_kind(Verdict::NO_PROGRESS);
    cause.set_message(
        "the job was restarted " +
        count(static_cast<size_t>(restarts_.restarts_without_progress()), "time") +
        " without progress (--no_progress_restarts):" + history_text(restarts_.history()));
    return decide(std::move(cause), now);
  }
  cause_ = std::move(cause);
  if (!members_have_quorum()) return end_without_quorum(now);
  awaited_.clear();
  root_cause_.clear(), stack_collection_.reset(), killed_.reset(), scale_up_due_.reset();
  RestartCommand command;
  command.set_generation(generation_);
  *command.mutable_cause() = cause_;
  *command.mutable_end() = std::move(end);
  if (cause_.kind() != Verdict::RESIZED) command.set_restart(restarts_.used());
  command.set_of(spec().restarts.max_restarts);
  for (const auto& [id, session] : sessions_) {
    if (!session.member) continue;
    if (session.node_rank < 0) {
      send(id, join_progress("generation " + std::to_string(generation_) +
                             " is over: " + cause_.message()));
    } else {
      awaited_.insert(id);
      send(id, command);
    }
  }
}

void JobState::on_ready(SessionId session, int generation, Time now) {
  if (!touch_member(session, now) || phase_ != Phase::kStopping || generation != generation_)
    return;
  if (awaited_.erase(session) > 0 && awaited_.empty()) gather(now);
}

void JobState::gather(Time now) {
  phase_ = Phase::kGathering;
  gather_due_ = now + spec().restarts.elastic_timeout;
  next_progress_ = now + times_.first_progress;
  start_if_complete(now);
}

void JobState::start_if_complete(Time now) {
  if (phase_ == Phase::kForming) {
    if (membership_.complete()) return propose(now);
    gather_due_ = now + spec().restarts.elastic_timeout;  // others may be on their way
    return;
  }
  if (phase_ != Phase::kGathering) return;
  if (!members_have_quorum()) return end_without_quorum(now);
  if (membership_.enough()) propose(now);
}

void JobState::advance_gathering(Time now) {
  if (now < gather_due_) return report_missing_nodes(now);
  Verdict verdict = lost_ ? *lost_ : cause_;
  *verdict.mutable_message() +=
      "; " + count(static_cast<size_t>(joined()), "node") + " left of the " +
      std::to_string(spec().required_nodes()) + " that it needs; no other joined within " +
      seconds_text(spec().restarts.elastic_timeout) + " (--elastic_timeout)";
  decide(std::move(verdict), now);
}

// Sends the world of the next generation. The first generation begins at once. A later one begins
// when all its nodes know it: from then on they follow no other host that would continue from the
// generation before.
void JobState::propose(Time now) {
  const std::shared_ptr<const World> base = world_;
  const std::shared_ptr<World> next = membership_.assign_ranks(++generation_, base.get());
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
    if (!base) warn_of_skew(id, info);
    if (session.node_rank >= 0) send(id, Assignment{world_, session.node_rank, {}});
  }
  phase_ = Phase::kAgreeing;
  if (!base) begin_generation(now);
}

void JobState::on_accepted(SessionId id, int generation, Time now) {
  const Session* session = touch_member(id, now);
  if (!session || phase_ != Phase::kAgreeing || generation != generation_ ||
      awaited_.erase(id) == 0)
    return;
  if (session->base_rank >= 0) base_ranks_.insert(session->base_rank);
  if (awaited_.empty()) begin_generation(now);
}

void JobState::begin_generation(Time now) {
  if (!is_committed()) return end_without_quorum(now);
  phase_ = Phase::kRunning;
  generation_start_ = now;
  stragglers_.begin(now);
  root_cause_ = RootCauseAnalyzer(world_->nodes.size() > 1 ? times_.root_cause
                                                           : single_node_times(times_.root_cause));
  if (lost_) return end_generation(Verdict(*lost_), now);  // lost before the generation began
  wire::Start start;
  start.set_generation(generation_);
  for (const auto& [id, session] : sessions_) {
    if (!session.member) continue;
    if (session.node_rank >= 0) {
      if (generation_ > 1) send(id, start);
    } else if (generation_ == 1 || is_below_full_size()) {  // it joined meanwhile
      notify_newcomer(id, now);
    } else {
      send(id, Assignment{world_, -1, {}});
    }
  }
}

void JobState::on_node_lost_between(SessionId id, const Verdict& lost, Time now) {
  membership_.remove(id);
  awaited_.erase(id);
  if (phase_ != Phase::kFailingOver) lost_ = lost;
  broadcast(peer_event(PeerEvent::LOST, lost.node_rank(), lost.node(), lost.message()));
  if (phase_ == Phase::kFailingOver) return;
  if (phase_ == Phase::kGathering) return start_if_complete(now);
  if (phase_ == Phase::kStopping && !members_have_quorum()) return end_without_quorum(now);
  if (!awaited_.empty()) return;
  phase_ == Phase::kStopping ? gather(now) : begin_generation(now);
}

// Whether the job runs with fewer nodes than it may.
bool JobState::is_below_full_size() const {
  return static_cast<int>(world_->nodes.size()) < spec().nnodes;
}

// Informs a node that joined while the job runs, or that exceeds the number of nodes to run.
void JobState::notify_newcomer(SessionId id, Time now) {
  if (!world_) return;
  const auto& own = sessions_.at(id);
  if (own.node_rank >= 0) return;
  const std::string job = "the job runs with " + count(world_->nodes.size(), "node") +
                          " (generation " + std::to_string(generation_) + ")";
  const std::string address = membership_.members().at(id).address;
  if (phase_ == Phase::kRunning && is_below_full_size()) {
    scale_up_due_ = now + spec().restarts.elastic_timeout;
    const std::string when = seconds_text(spec().restarts.elastic_timeout) + " (--elastic_timeout)";
    send(id, join_progress(job + "; it restarts with this node in " + when));
    send_to_host(
        join_progress("node " + address + " has joined; the job restarts with it in " + when));
  } else if (phase_ != Phase::kGathering) {
    send(id, join_progress(job + "; this node waits as a spare"));
    send_to_host(
        peer_event(PeerEvent::FINISHED, -1, address, "node " + address + " waits as a spare"));
  }
  if (phase_ == Phase::kRunning) send(id, Assignment{world_, -1, {}});
}

// New nodes have joined and the wait is over: restarts the job with them.
void JobState::scale_up(Time now) {
  scale_up_due_.reset();
  std::vector<std::string> newcomers;
  for (const auto& [id, info] : membership_.members()) {
    if (sessions_.at(id).node_rank < 0) newcomers.push_back(info.address);
  }
  if (newcomers.empty() || stop_) return;  // they have left again
  std::sort(newcomers.begin(), newcomers.end(), address_less);
  Verdict cause = node_verdict(Verdict::RESIZED, -1);
  const int more = std::min(static_cast<int>(newcomers.size()),
                            spec().nnodes - static_cast<int>(world_->nodes.size()));
  cause.set_message("the job continues with " +
                    count(world_->nodes.size() + static_cast<size_t>(more), "node") +
                    " after these joined: " + list_some(newcomers));
  end_generation(std::move(cause), now);
}

}  // namespace fleet
