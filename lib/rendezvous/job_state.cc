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
constexpr std::chrono::milliseconds kLook{500};

}  // namespace

std::chrono::milliseconds beat_for(std::chrono::milliseconds timeout) {
  return std::clamp(timeout / 12, std::chrono::milliseconds(20), std::chrono::milliseconds(1'000));
}

std::chrono::milliseconds silence_for(std::chrono::milliseconds timeout) {
  return timeout - beat_for(timeout);
}

JobState::JobState(JobSpec spec, JobTimes times, std::string reach, Time now)
    : times_(times),
      reach_(std::move(reach)),
      started_(now),
      last_advance_(now),
      next_progress_(now + times.first_progress),
      membership_(spec),
      restarts_(spec.restarts),
      settled_(times.early_silence.count() == 0) {}

void JobState::say(SessionId to, std::shared_ptr<const HostEvent> event, bool last) {
  outgoing_.push_back({to, std::move(event), last});
}

void JobState::say(SessionId to, HostEvent event, bool last) {
  say(to, std::make_shared<const HostEvent>(std::move(event)), last);
}

void JobState::say_all(const RendezvousEvent& event) {
  const auto shared = std::make_shared<const HostEvent>(event);
  for (const auto& [id, session] : sessions_) {
    if (session.member) say(id, shared);
  }
}

void JobState::say_ranks(const RendezvousEvent& event) {
  const auto shared = std::make_shared<const HostEvent>(event);
  for (const auto& [id, session] : sessions_) {
    if (session.member && session.node_rank >= 0) say(id, shared);
  }
}

void JobState::say_host(const RendezvousEvent& event) {
  if (const auto host = membership_.host(); host && sessions_.contains(*host)) say(*host, event);
}

void JobState::forget(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  by_silence_.erase(found->second.place);
  sessions_.erase(found);
}

void JobState::refuse(SessionId session, const Error& error) {
  forget(session);
  say(session, Refusal{error}, true);
}

void JobState::opened(SessionId session, Time now) {
  sessions_[session] = {now, by_silence_.insert(by_silence_.end(), session)};
}

void JobState::touch(Session* session, Time now) {
  session->last_heard = now;
  by_silence_.splice(by_silence_.end(), by_silence_, session->place);
}

void JobState::join(SessionId session, NodeInfo info, Time now) {
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
  if (const auto stale = settle_survivor(info)) return refuse(session, *stale);
  std::optional<SessionId> replaced;
  const auto error = membership_.add(session, std::move(info), &replaced);
  if (replaced) {
    refuse(*replaced, Error(ErrorCode::kStale, "has connected again", "node " + address));
  }
  if (error) {
    refuse(session, *error);
    return say_host(JoinProgress{"refused: " + std::string(error->what())});
  }
  found->second.member = true;
  touch(&found->second, now);
  if (phase_ == Phase::kSucceeding) return survivor_came(session, now);
  say(session, pace());
  tell_newcomer(session, now);
  start_if_complete(now);
}

// Reports differences that --allow_skew accepted. Called late, because node 0's launcher may have
// joined after the others.
void JobState::tell_skew(SessionId session, const NodeInfo& info) {
  const std::vector<std::string> skew = membership_.skew(info);
  if (skew.empty()) return;
  const JoinProgress line{"node " + info.address +
                          " differs, as --allow_skew allows: " + list_some(skew)};
  say(session, line);
  say_host(line);
}

// The member of this session; nullptr if the connection has not joined, in which case its messages
// are ignored.
JobState::Session* JobState::heard(SessionId session, Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || !found->second.member) return nullptr;
  touch(&found->second, now);
  return &found->second;
}

bool JobState::is_member(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.member;
}

void JobState::beat(SessionId session, Time now) { heard(session, now); }

void JobState::pace_came(SessionId session, std::vector<RankPace> pace, Time now) {
  const Session* from = heard(session, now);
  if (!from || from->node_rank < 0 || phase_ != Phase::kRunning || stop_) return;
  for (RankPace& rank : pace) rank.node_rank = from->node_rank;
  for (std::string& line : pace_.update(pace, now)) {
    say_all(PeerEvent{PeerEvent::Kind::kPace, from->node_rank, {}, std::move(line)});
  }
}

void JobState::left(SessionId session, Time now) {
  node_gone(session, "its fleetrun left before its ranks had ended", now, now);
}

void JobState::lost(SessionId session, const std::string& how, Time now) {
  node_gone(session, "its fleetrun " + how, now, now);
}

void JobState::node_failed(SessionId id, const std::string& how, Time now) {
  Session* session = heard(id, now);
  if (!session || phase_ == Phase::kEnded) return;
  const int rank = session->node_rank;
  Verdict lost = lost_verdict(id, how);
  const PeerEvent news{PeerEvent::Kind::kLost, rank, lost.node, lost.message};
  // Stopping already: it finishes like the other nodes.
  if (phase_ == Phase::kRunning && stop_) return say_all(news);
  // The other nodes are about to lose their host and should know the reason.
  if (spec().restarts.max_restarts > 0 && id == membership_.host()) say_all(news);
  node_gone(id, how, now, now);
  say_farewell(id, lost);
}

Verdict JobState::lost_verdict(SessionId id, const std::string& how) const {
  const int rank = sessions_.at(id).node_rank;
  Verdict verdict = node_verdict(VerdictKind::kNodeLost, rank);
  if (rank < 0) verdict.node = membership_.members().at(id).address;
  const std::string label = node_label(verdict.node, verdict.hostname);
  verdict.message = "node " + (rank < 0 ? label : std::to_string(rank) + " (" + label + ")") +
                    " was lost: " + how;
  return verdict;
}

// Tells a node that is no longer part of the job how the job has ended or, if the job continues
// without the node, why.
void JobState::say_farewell(SessionId session, const Verdict& lost) {
  say(session, verdict_ ? *verdict_ : lost, true);
}

void JobState::node_gone(SessionId id, const std::string& how, Time since, Time now) {
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
    return say_all(
        JoinProgress{"node " + address + " has left again; waiting for " + membership_.missing()});
  }
  const std::string address = membership_.members().at(id).address;
  if (session.node_rank < 0) {  // a spare
    membership_.remove(id);
    say_host(PeerEvent{PeerEvent::Kind::kLost, -1, address,
                       "node " + address + ", a spare, has left again"});
    if (phase_ == Phase::kGathering) start_if_complete(now);
    return;
  }
  // Its fleetrun is about to end the rendezvous: the other nodes notice and look for the next host.
  if (spec().restarts.max_restarts > 0 && id == membership_.host()) return membership_.remove(id);
  if (phase_ != Phase::kRunning) return gone_between(id, verdict, now);
  if (spec().restarts.max_restarts > 0) membership_.remove(id);
  // While its parameter servers still serve other nodes, a node has not finished.
  const bool serves = world_->nodes.at(session.node_rank).servers > 0;
  if (session.finished && !serves) return;
  if (stop_) {  // stopping already: the stop stays the verdict
    say_all(PeerEvent{PeerEvent::Kind::kLost, session.node_rank, verdict.node, verdict.message});
    return session.finished ? void() : one_less(now);
  }
  lost_ = verdict;
  causes_.node_lost(session.node_rank, how, since);
  decide_cause(now);
}

void JobState::shut_down(Time now) {
  if (spec().restarts.max_restarts > 0 && phase_ != Phase::kForming) return;  // the others continue
  Verdict verdict = node_verdict(VerdictKind::kNodeLost, 0);
  if (verdict.node.empty()) verdict.node = reach_;
  verdict.message = "node 0 (" + verdict.node + ") has ended the rendezvous";
  decide(std::move(verdict), now);
}

void JobState::tell_who_is_missing(Time now) {
  if (now < next_progress_) return;
  next_progress_ = now + times_.progress_every;
  say_all(JoinProgress{"waiting for " + membership_.missing() + " of " +
                       std::to_string(spec().nnodes) + " nodes; here: " + membership_.present()});
}

void JobState::time_out() {
  const Error error(ErrorCode::kTimeout,
                    "only " + std::to_string(joined()) + " of " + std::to_string(spec().nnodes) +
                        " nodes joined within " + seconds_text(times_.timeout) + ": " +
                        membership_.present() + "; missing: " + membership_.missing(),
                    "rendezvous of job '" + shown_name(spec().job_id) + "' at " + reach_,
                    "start fleetrun on the missing ones too, check that they can reach " + reach_ +
                        " (firewall, --rdzv_port), or raise --rdzv_timeout");
  phase_ = Phase::kEnded;
  outcome_ = error.failure();
  std::vector<SessionId> members;
  for (const auto& [id, info] : membership_.members()) members.push_back(id);
  for (const SessionId id : members) refuse(id, error);
}

Welcome JobState::pace() const {
  return settled_ ? Welcome{times_.beat, times_.silence}
                  : Welcome{times_.early_beat, times_.early_silence};
}

void JobState::settle(Time now) {
  if (settled_ || phase_ != Phase::kRunning) return;
  if (!settles_at_) settles_at_ = now + times_.settles_in;
  if (now < *settles_at_) return;
  settled_ = true;
  const auto welcome = std::make_shared<const HostEvent>(pace());
  for (auto& [id, session] : sessions_) {
    session.last_heard = now;
    if (session.member) say(id, welcome);
  }
}

void JobState::lose_silent(Time now) {
  // The host's own node sends heartbeats through the same threads and no network. If it is late
  // too, this process is starved.
  const auto host = membership_.host();
  const auto own = host ? sessions_.find(*host) : sessions_.end();
  if (own != sessions_.end()) now = std::min(now, own->second.last_heard + 2 * pace().beat);
  while (!by_silence_.empty()) {
    const SessionId id = by_silence_.front();
    if (now - sessions_.at(id).last_heard < pace().silence) return;
    const Session session = sessions_.at(id);
    const std::string how = "was silent for " + seconds_text(pace().silence);
    std::optional<Verdict> lost;  // in terms of the world that it belongs to
    if (session.node_rank >= 0) lost = lost_verdict(id, "its fleetrun " + how);
    node_gone(id, "its fleetrun " + how, session.last_heard, now);
    // If it wakes up again, it learns the outcome. A node that was waiting may join again.
    if (lost) {
      say_farewell(id, *lost);
    } else {
      say(id, Refusal{Error(ErrorCode::kPeerLost, how, "this node's connection")}, true);
    }
  }
}

// If the host was suspended (stopped, starved), heartbeats wait unread in its sockets: do not count
// that time against any node.
void JobState::allow_for_suspension(Time now) {
  const auto limit = std::min(3 * pace().beat, pace().silence / 2);
  const auto passed = now - last_advance_, late = now - next_deadline();
  if (passed > limit) {
    for (auto& [id, session] : sessions_)
      session.last_heard = std::min(now, session.last_heard + passed);
  }
  if (late > limit) started_ += late, gather_due_ += late;
}

void JobState::advance(Time now) {
  allow_for_suspension(now);
  last_advance_ = now;
  settle(now);
  lose_silent(now);
  if (phase_ == Phase::kRunning && now >= cause_due()) decide_cause(now);
  if (phase_ == Phase::kRunning && look_ && now >= look_->due) end_look(now);
  if (phase_ == Phase::kRunning && grow_due_ && now >= *grow_due_) grow(now);
  if (phase_ == Phase::kGathering) advance_between(now);
  if (phase_ == Phase::kSucceeding) succeed_if_ready(now);
  if (phase_ != Phase::kForming) return;
  const bool enough = membership_.enough() && spec().fewest() < spec().nnodes;
  if (enough && now >= std::min(gather_due_, started_ + times_.timeout)) return propose(now);
  if (now >= started_ + times_.timeout) return time_out();
  tell_who_is_missing(now);
}

JobState::Time JobState::next_deadline() const {
  Time next = last_advance_ + std::chrono::hours(1);
  if (!by_silence_.empty()) {
    const Time silent = sessions_.at(by_silence_.front()).last_heard + pace().silence;
    // Avoids an immediate repeat when a silent node is not to blame.
    const auto least = times_.beat / 8;
    next = std::clamp(silent, last_advance_ + least,
                      last_advance_ + std::max(least, std::min(pace().beat, kLook)));
  }
  if (phase_ == Phase::kRunning) next = std::min(next, cause_due());
  if (phase_ == Phase::kForming) next = std::min({next, started_ + times_.timeout, next_progress_});
  return next;
}

}  // namespace fleet
