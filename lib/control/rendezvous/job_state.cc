#include "rendezvous/job_state.h"

#include <algorithm>
#include <utility>

#include "base/terminal_text.h"
#include "rendezvous/seconds.h"

namespace fleet {
namespace {

// Up to this many nodes, all are informed of each one that leaves.
constexpr int kFew = 64;

// Other deadlines may arrive this soon even if heartbeats are slow.
constexpr std::chrono::milliseconds kMaxAdvanceInterval{500};

}  // namespace

std::chrono::milliseconds heartbeat_interval_for(std::chrono::milliseconds timeout) {
  return std::clamp(timeout / 12, std::chrono::milliseconds(20), std::chrono::milliseconds(1'000));
}

std::chrono::milliseconds max_silence_for(std::chrono::milliseconds timeout) {
  return timeout - heartbeat_interval_for(timeout);
}

JobState::JobState(JobSpec spec, JobTimes times, std::string display_address, Time now)
    : times_(times),
      display_address_(std::move(display_address)),
      started_(now),
      last_advance_(now),
      next_progress_(now + times.first_progress),
      membership_(spec),
      restarts_(spec.restarts),
      started_up_(times.startup_max_silence.count() == 0) {}

void JobState::send(SessionId to, std::shared_ptr<const HostEvent> event, bool last) {
  outgoing_.push_back({to, std::move(event), last});
}

void JobState::send(SessionId to, HostEvent event, bool last) {
  send(to, std::make_shared<const HostEvent>(std::move(event)), last);
}

void JobState::broadcast(const RendezvousEvent& event) {
  const auto shared = std::make_shared<const HostEvent>(event);
  for (const auto& [id, session] : sessions_) {
    if (session.member) send(id, shared);
  }
}

void JobState::broadcast_to_ranks(const RendezvousEvent& event) {
  const auto shared = std::make_shared<const HostEvent>(event);
  for (const auto& [id, session] : sessions_) {
    if (session.member && session.node_rank >= 0) send(id, shared);
  }
}

void JobState::send_to_host(const RendezvousEvent& event) {
  if (const auto host = membership_.host(); host && sessions_.contains(*host)) send(*host, event);
}

void JobState::forget(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  by_silence_.erase(found->second.silence_position);
  sessions_.erase(found);
}

void JobState::refuse(SessionId session, const Error& error) {
  forget(session);
  send(session, Refusal{error}, true);
}

void JobState::on_session_opened(SessionId session, Time now) {
  sessions_[session] = {now, by_silence_.insert(by_silence_.end(), session)};
}

void JobState::touch(Session* session, Time now) {
  session->last_received = now;
  by_silence_.splice(by_silence_.end(), by_silence_, session->silence_position);
}

void JobState::on_join(SessionId session, NodeInfo info, Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.member) return;
  const std::string address = info.address, job = "job '" + shown_name(spec().job_id) + "'";
  const bool open = phase_ == Phase::kForming || spec().restarts.max_restarts > 0;
  if (info.job.job_id == spec().job_id && !open && phase_ != Phase::kEnded) {
    return refuse(session,
                  Error(ErrorCode::kStale,
                        job + " already runs with all its " + std::to_string(spec().nnodes) +
                            " nodes (" + membership_.present() + ")",
                        "node " + address, "another job needs another --job_id and --rdzv_port"));
  }
  if (info.job.job_id == spec().job_id && phase_ == Phase::kEnded) {
    return refuse(session, Error(ErrorCode::kStale, job + " has ended: " + outcome_,
                                 "node " + address, "start it again on every node"));
  }
  if (const auto stale = check_survivor(info)) return refuse(session, *stale);
  std::optional<SessionId> replaced;
  const auto error = membership_.add(session, std::move(info), &replaced);
  if (replaced) {
    refuse(*replaced, Error(ErrorCode::kStale, "has connected again", "node " + address));
  }
  if (error) {
    refuse(session, *error);
    return send_to_host(join_progress("refused: " + std::string(error->what())));
  }
  found->second.member = true;
  touch(&found->second, now);
  if (phase_ == Phase::kFailingOver) return on_survivor_joined(session, now);
  send(session, current_intervals());
  notify_newcomer(session, now);
  start_if_complete(now);
}

// Reports differences that --allow_skew accepted. Called late, because node 0's launcher may have
// joined after the others.
void JobState::warn_of_skew(SessionId session, const NodeInfo& info) {
  const std::vector<std::string> skew = membership_.skew(info);
  if (skew.empty()) return;
  const JoinProgress line = join_progress("node " + info.address +
                                          " differs, as --allow_skew allows: " + list_some(skew));
  send(session, line);
  send_to_host(line);
}

// The member of this session; nullptr if the connection has not joined, in which case its messages
// are ignored.
JobState::Session* JobState::touch_member(SessionId session, Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || !found->second.member) return nullptr;
  touch(&found->second, now);
  return &found->second;
}

bool JobState::is_member(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.member;
}

void JobState::on_heartbeat(SessionId session, Time now) { touch_member(session, now); }

void JobState::on_steps(SessionId session, StepReport report, Time now) {
  const Session* from = touch_member(session, now);
  if (!from || from->node_rank < 0 || phase_ != Phase::kRunning || stop_) return;
  for (RankSteps& rank : *report.mutable_ranks()) rank.set_node_rank(from->node_rank);
  for (std::string& line : stragglers_.update(report, now)) {
    broadcast(peer_event(PeerEvent::STRAGGLER, from->node_rank, {}, std::move(line)));
  }
}

void JobState::on_leave(SessionId session, Time now) {
  on_node_gone(session, "its fleetrun left before its ranks had ended", now, now);
}

void JobState::on_session_lost(SessionId session, const std::string& how, Time now) {
  on_node_gone(session, "its fleetrun " + how, now, now);
}

void JobState::on_node_failed(SessionId id, const std::string& how, Time now) {
  Session* session = touch_member(id, now);
  if (!session || phase_ == Phase::kEnded) return;
  const int rank = session->node_rank;
  Verdict lost = lost_verdict(id, how);
  const PeerEvent news = peer_event(PeerEvent::LOST, rank, lost.node(), lost.message());
  // Stopping already: it finishes like the other nodes.
  if (phase_ == Phase::kRunning && stop_) return broadcast(news);
  // The other nodes are about to lose their host and should know the reason.
  if (spec().restarts.max_restarts > 0 && id == membership_.host()) broadcast(news);
  on_node_gone(id, how, now, now);
  send_farewell(id, lost);
}

Verdict JobState::lost_verdict(SessionId id, const std::string& how) const {
  const int rank = sessions_.at(id).node_rank;
  Verdict verdict = node_verdict(Verdict::NODE_LOST, rank);
  if (rank < 0) verdict.set_node(membership_.members().at(id).address);
  const std::string label = node_label(verdict.node(), verdict.hostname());
  verdict.set_message("node " + (rank < 0 ? label : std::to_string(rank) + " (" + label + ")") +
                      " was lost: " + how);
  return verdict;
}

// Tells a node that is no longer part of the job how the job has ended or, if the job continues
// without the node, why.
void JobState::send_farewell(SessionId session, const Verdict& lost) {
  send(session, verdict_ ? *verdict_ : lost, true);
}

void JobState::on_node_gone(SessionId id, const std::string& how, Time since, Time now) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const Session session = found->second;
  if (!session.member || phase_ == Phase::kEnded) return forget(id);
  const Verdict verdict = lost_verdict(id, how);
  forget(id);
  if (phase_ == Phase::kForming) {
    const std::string address = membership_.members().at(id).address;
    membership_.remove(id);
    if (spec().nnodes > kFew) return;  // the next line about missing nodes suffices
    return broadcast(
        join_progress("node " + address + " has left again; waiting for " + membership_.missing()));
  }
  const std::string address = membership_.members().at(id).address;
  if (session.node_rank < 0) {  // a spare
    membership_.remove(id);
    send_to_host(
        peer_event(PeerEvent::LOST, -1, address, "node " + address + ", a spare, has left again"));
    if (phase_ == Phase::kGathering) start_if_complete(now);
    return;
  }
  // Its fleetrun is about to end the rendezvous: the other nodes notice and look for the next host.
  if (spec().restarts.max_restarts > 0 && id == membership_.host()) return membership_.remove(id);
  if (phase_ != Phase::kRunning) return on_node_lost_between(id, verdict, now);
  if (spec().restarts.max_restarts > 0) membership_.remove(id);
  // While its parameter servers still serve other nodes, a node has not finished.
  const bool serves = world_->nodes.at(session.node_rank).servers > 0;
  if (session.finished && !serves) return;
  if (stop_) {  // stopping already: the stop stays the verdict
    broadcast(peer_event(PeerEvent::LOST, session.node_rank, verdict.node(), verdict.message()));
    return session.finished ? void() : on_node_finished(now);
  }
  lost_ = verdict;
  root_cause_.on_node_lost(session.node_rank, how, since);
  decide_root_cause(now);
}

void JobState::shut_down(Time now) {
  if (spec().restarts.max_restarts > 0 && phase_ != Phase::kForming) return;  // the others continue
  Verdict verdict = node_verdict(Verdict::NODE_LOST, 0);
  if (verdict.node().empty()) verdict.set_node(display_address_);
  verdict.set_message("node 0 (" + verdict.node() + ") has ended the rendezvous");
  decide(std::move(verdict), now);
}

void JobState::report_missing_nodes(Time now) {
  if (now < next_progress_) return;
  next_progress_ = now + times_.progress_every;
  broadcast(join_progress("waiting for " + membership_.missing() + " of " +
                          std::to_string(spec().nnodes) +
                          " nodes; here: " + membership_.present()));
}

void JobState::time_out() {
  const Error error(ErrorCode::kTimeout,
                    "only " + std::to_string(joined()) + " of " + std::to_string(spec().nnodes) +
                        " nodes joined within " + seconds_text(times_.timeout) + ": " +
                        membership_.present() + "; missing: " + membership_.missing(),
                    "rendezvous of job '" + shown_name(spec().job_id) + "' at " + display_address_,
                    "start fleetrun on the missing ones too, check that they can reach " +
                        display_address_ + " (firewall, --rdzv_port), or raise --rdzv_timeout");
  phase_ = Phase::kEnded;
  outcome_ = error.failure();
  std::vector<SessionId> members;
  for (const auto& [id, info] : membership_.members()) members.push_back(id);
  for (const SessionId id : members) refuse(id, error);
}

Welcome JobState::current_intervals() const {
  return started_up_ ? Welcome{times_.heartbeat_interval, times_.max_silence}
                     : Welcome{times_.startup_heartbeat_interval, times_.startup_max_silence};
}

void JobState::end_startup(Time now) {
  if (started_up_ || phase_ != Phase::kRunning) return;
  if (!startup_ends_at_) startup_ends_at_ = now + times_.startup_time;
  if (now < *startup_ends_at_) return;
  started_up_ = true;
  const auto welcome = std::make_shared<const HostEvent>(current_intervals());
  for (auto& [id, session] : sessions_) {
    session.last_received = now;
    if (session.member) send(id, welcome);
  }
}

void JobState::expire_silent_sessions(Time now) {
  // The host's own node sends heartbeats through the same threads and no network. If it is late
  // too, this process is starved.
  const auto host = membership_.host();
  const auto own = host ? sessions_.find(*host) : sessions_.end();
  if (own != sessions_.end())
    now = std::min(now, own->second.last_received + 2 * current_intervals().heartbeat_interval);
  while (!by_silence_.empty()) {
    const SessionId id = by_silence_.front();
    if (now - sessions_.at(id).last_received < current_intervals().max_silence) return;
    const Session session = sessions_.at(id);
    const std::string how = "was silent for " + seconds_text(current_intervals().max_silence);
    std::optional<Verdict> lost;  // in terms of the world that it belongs to
    if (session.node_rank >= 0) lost = lost_verdict(id, "its fleetrun " + how);
    on_node_gone(id, "its fleetrun " + how, session.last_received, now);
    // If it wakes up again, it learns the outcome. A node that was waiting may join again.
    if (lost) {
      send_farewell(id, *lost);
    } else {
      send(id, Refusal{Error(ErrorCode::kPeerLost, how, "this node's connection")}, true);
    }
  }
}

// If the host was suspended (stopped, starved), heartbeats wait unread in its sockets: do not count
// that time against any node.
void JobState::allow_for_suspension(Time now) {
  const auto limit = suspension_limit(current_intervals());
  const auto passed = now - last_advance_, late = now - next_deadline();
  if (passed > limit) {
    for (auto& [id, session] : sessions_)
      session.last_received = std::min(now, session.last_received + passed);
  }
  if (late > limit) started_ += late, gather_due_ += late;
}

void JobState::advance(Time now) {
  allow_for_suspension(now);
  last_advance_ = now;
  end_startup(now);
  expire_silent_sessions(now);
  if (phase_ == Phase::kRunning && now >= root_cause_due()) decide_root_cause(now);
  if (phase_ == Phase::kRunning && stack_collection_ && now >= stack_collection_->due)
    end_stack_collection(now);
  if (phase_ == Phase::kRunning && scale_up_due_ && now >= *scale_up_due_) scale_up(now);
  if (phase_ == Phase::kGathering) advance_gathering(now);
  if (phase_ == Phase::kFailingOver) complete_failover_if_ready(now);
  if (phase_ != Phase::kForming) return;
  const bool enough = membership_.enough() && spec().required_nodes() < spec().nnodes;
  if (enough && now >= std::min(gather_due_, started_ + times_.timeout)) return propose(now);
  if (now >= started_ + times_.timeout) return time_out();
  report_missing_nodes(now);
}

JobState::Time JobState::next_deadline() const {
  Time next = last_advance_ + std::chrono::hours(1);
  if (!by_silence_.empty()) {
    const Time silent =
        sessions_.at(by_silence_.front()).last_received + current_intervals().max_silence;
    // Avoids an immediate repeat when a silent node is not to blame.
    const auto least = times_.heartbeat_interval / 8;
    next = std::clamp(
        silent, last_advance_ + least,
        last_advance_ +
            std::max(least, std::min(current_intervals().heartbeat_interval, kMaxAdvanceInterval)));
  }
  if (phase_ == Phase::kRunning) next = std::min(next, root_cause_due());
  if (phase_ == Phase::kForming) next = std::min({next, started_ + times_.timeout, next_progress_});
  return next;
}

}  // namespace fleet
