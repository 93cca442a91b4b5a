#include "rendezvous/job_state.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "rendezvous/stacks.h"

namespace fleet {
namespace {

// Nodes that may all be told of each one that goes.
constexpr int kFew = 64;

// Something may be due this soon even where nodes beat slowly.
constexpr std::chrono::milliseconds kLook{500};

std::string seconds(std::chrono::steady_clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", std::chrono::duration<double>(time).count());
  return text;
}

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
  const std::string address = info.address, job = "job '" + spec().job_id + "'";
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

// What --allow_skew let in. Only now: node 0's launcher may have joined after the others.
void JobState::tell_skew(SessionId session, const NodeInfo& info) {
  const std::vector<std::string> skew = membership_.skew(info);
  if (skew.empty()) return;
  const JoinProgress line{"node " + info.address +
                          " differs, as --allow_skew allows: " + list_some(skew)};
  say(session, line);
  say_host(line);
}

// The member that speaks; nothing where a connection has not joined: it has no say.
JobState::Session* JobState::heard(SessionId session, Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || !found->second.member) return nullptr;
  touch(&found->second, now);
  return &found->second;
}

void JobState::beat(SessionId session, Time now) { heard(session, now); }

Verdict JobState::node_verdict(VerdictKind kind, int node_rank) const {
  Verdict verdict;
  verdict.kind = kind;
  verdict.epoch = epoch_;
  verdict.node_rank = node_rank;
  if (world_ && node_rank >= 0) {
    verdict.node = world_->nodes.at(node_rank).address;
    verdict.hostname = world_->nodes.at(node_rank).hostname;
  }
  return verdict;
}

void JobState::decide(Verdict verdict, Time now) {
  if (verdict_) return;
  if (!restarts_.history().empty()) {
    if (phase_ == Phase::kRunning) restarts_.keep(end_of_epoch(verdict, now));
    verdict.restarts = restarts_.used();
    verdict.history = restarts_.history();
  }
  phase_ = Phase::kEnded;
  outcome_ = verdict.message;
  verdict_ = std::move(verdict);
  say_all(*verdict_);
}

void JobState::rank_exited(SessionId session, RankExit exit, Time now) {
  Session* from = heard(session, now);
  if (!from || phase_ != Phase::kRunning || !exit.failed()) return;
  exit.node_rank = from->node_rank;
  // Whatever ends after an order to stop ends because of it.
  if (stop_) return;
  if (exit.killed_by_us) {
    if (!killed_) killed_ = std::move(exit);
    return;
  }
  causes_.failed(std::move(exit), now);
}

// A node that is overdue may be the cause of what the others report: it is heard or given up first.
JobState::Time JobState::cause_due() const {
  Time due = causes_.due();
  if (due == Time::max() || causes_.any_lost()) return due;
  const Time overdue = due - 3 * times_.beat;
  for (const SessionId id : by_silence_) {
    const Session& session = sessions_.at(id);
    if (session.last_heard >= overdue) break;
    if (session.member) due = std::max(due, session.last_heard + times_.silence);
  }
  return due;
}

void JobState::decide_cause(Time now) {
  Causes::Cause cause = causes_.decide();
  cause.exit ? decide_failed(std::move(*cause.exit), now)
             : decide_lost(cause.node_rank, cause.how, now);
}

void JobState::decide_lost(int node_rank, const std::string& how, Time now) {
  Verdict verdict = node_verdict(VerdictKind::kNodeLost, node_rank);
  verdict.message = "node " + std::to_string(node_rank) + " (" +
                    node_label(verdict.node, verdict.hostname) + ") was lost: its fleetrun " + how;
  epoch_over(std::move(verdict), now);
}

void JobState::decide_failed(RankExit exit, Time now) {
  Verdict verdict = node_verdict(VerdictKind::kRankFailed, exit.node_rank);
  verdict.message = describe(exit, node_label(verdict.node, verdict.hostname));
  if (!exit.log_path.empty()) verdict.message += "; its log: " + exit.log_path;
  verdict.exit = std::move(exit);
  epoch_over(std::move(verdict), now);
}

void JobState::rank_stalled(SessionId session, RankStall stall, Time now) {
  const Session* from = heard(session, now);
  if (!from || phase_ != Phase::kRunning || stop_ || (look_ && look_->hang)) return;
  // Where somebody has just asked, that look will do.
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

void JobState::pace_came(SessionId session, std::vector<RankPace> pace, Time now) {
  const Session* from = heard(session, now);
  if (!from || phase_ != Phase::kRunning || stop_) return;
  for (RankPace& rank : pace) rank.node_rank = from->node_rank;
  for (std::string& line : pace_.update(pace, now)) {
    say_all(PeerEvent{PeerEvent::Kind::kPace, from->node_rank, {}, std::move(line)});
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
  if (look_->hang) return decide_hang(now);
  look_.reset();
}

void JobState::decide_hang(Time now) {
  if (phase_ != Phase::kRunning || stop_) return;
  if (causes_.any()) return decide_cause(now);  // a rank that has failed explains it
  const std::vector<StackCluster> clusters = cluster_stacks(look_->stacks);
  RankExit exit;
  exit.rank = look_->hang->rank;
  exit.server = look_->hang->server;
  exit.local_rank = look_->hang->local_rank;
  exit.node_rank = look_->node_rank;
  exit.log_path = look_->hang->log_path;
  std::string why = "the first of which it was noticed";
  if (const RankStack* odd = odd_one(clusters)) {
    const bool same = odd->rank == exit.rank && odd->server == exit.server;
    exit.rank = odd->rank;
    exit.server = odd->server;
    exit.local_rank = odd->local_rank;
    exit.node_rank = odd->node_rank;
    if (!same) exit.log_path.clear();  // its name is known on its node only
    why = odd->state == 'T' ? "it is stopped" : "it does something else than the others";
  }
  Verdict verdict = node_verdict(VerdictKind::kHang, exit.node_rank);
  verdict.message =
      "the job hangs: rank " + std::to_string(look_->hang->rank) + " on node " +
      std::to_string(look_->node_rank) +
      (look_->hang->step < 0
           ? " has written nothing and used no CPU time for " + seconds(look_->hang->quiet_for)
           : " has done no step after step " + std::to_string(look_->hang->step) + " for " +
                 seconds(look_->hang->quiet_for)) +
      "\n  look at " + (exit.server ? "server " : "rank ") + std::to_string(exit.rank) +
      " (local rank " + std::to_string(exit.local_rank) + ") on node " +
      std::to_string(exit.node_rank) + " (" + node_label(verdict.node, verdict.hostname) +
      "): " + why + stacks_text(clusters);
  for (const int silent : look_->awaited) {
    verdict.message += "\n  node " + std::to_string(silent) + " has sent no stacks";
  }
  verdict.exit = std::move(exit);
  epoch_over(std::move(verdict), now);
}

void JobState::finished(SessionId session, Time now) {
  Session* from = heard(session, now);
  if (!from || phase_ != Phase::kRunning || from->finished) return;
  from->finished = true;
  const int rank = from->node_rank;
  const std::string& address = world_->nodes.at(rank).address;
  const std::string line = "node " + std::to_string(rank) + " (" + address + ") has finished";
  if (spec().nnodes > 1) say_host(PeerEvent{PeerEvent::Kind::kFinished, rank, address, line});
  one_less(now);
}

// One node less whose ranks run; the last one ends the job.
void JobState::one_less(Time now) {
  if (--unfinished_ > 0) return;
  if (causes_.any()) return decide_cause(now);
  Verdict verdict = node_verdict(VerdictKind::kSuccess, -1);
  verdict.message = "all " + std::to_string(world_->world_size) + " ranks have ended well";
  if (stop_ || killed_) {
    verdict = node_verdict(VerdictKind::kStopped, stop_ ? stop_->node_rank : killed_->node_rank);
    verdict.signal = stop_ ? stop_->signal : killed_->signal != 0 ? killed_->signal : SIGTERM;
    verdict.message = "stopped by " + signal_name(verdict.signal) + " to the launcher of node " +
                      std::to_string(verdict.node_rank) + " (" + verdict.node + ")";
  }
  decide(std::move(verdict), now);
}

void JobState::stop_wished(SessionId session, int signal, Time now, bool kill) {
  const Session* from = heard(session, now);
  if (!from || phase_ == Phase::kEnded) return;
  if (phase_ == Phase::kForming) {
    const NodeInfo& info = membership_.members().at(session);
    Verdict verdict = node_verdict(VerdictKind::kStopped, info.node_rank);
    verdict.node = info.address;
    verdict.hostname = info.hostname;
    verdict.signal = signal;
    verdict.message = "stopped by " + signal_name(signal) + " to the launcher of node " +
                      info.address + " before all nodes had come";
    return decide(std::move(verdict), now);
  }
  const int rank = from->node_rank;
  if (rank < 0) return;             // a spare only leaves
  if (phase_ != Phase::kRunning) {  // its ranks are stopped, or being stopped
    Verdict verdict = node_verdict(VerdictKind::kStopped, rank);
    verdict.signal = signal;
    verdict.message = "stopped by " + signal_name(signal) + " to the launcher of node " +
                      std::to_string(rank) + " (" + verdict.node + ") during a restart";
    return decide(std::move(verdict), now);
  }
  const StopOrder order{signal, rank, world_->nodes.at(rank).address, kill};
  if (!stop_) stop_ = order;  // the first one is the verdict, later ones may be harsher
  say_all(order);
}

void JobState::signal_wished(SessionId session, int signal, Time now) {
  const Session* from = heard(session, now);
  if (from && phase_ == Phase::kRunning) say_all(SignalOrder{signal, from->node_rank});
}

void JobState::left(SessionId session, Time now) {
  node_gone(session, "left before its ranks had ended", now, now);
}

void JobState::lost(SessionId session, const std::string& how, Time now) {
  node_gone(session, how, now, now);
}

void JobState::node_gone(SessionId id, const std::string& how, Time since, Time now) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const Session session = found->second;
  forget(id);
  if (!session.member || phase_ == Phase::kEnded) return;
  if (phase_ == Phase::kForming) {
    const std::string address = membership_.members().at(id).address;
    membership_.remove(id);
    if (spec().nnodes > kFew) return;  // the next line about who is missing will do
    return say_all(
        JoinProgress{"node " + address + " is gone again; waiting for " + membership_.missing()});
  }
  const std::string address = membership_.members().at(id).address;
  if (session.node_rank < 0) {  // a spare
    membership_.remove(id);
    say_host(PeerEvent{PeerEvent::Kind::kLost, -1, address,
                       "node " + address + ", a spare, is gone again"});
    if (phase_ == Phase::kGathering) start_if_complete(now);
    return;
  }
  const NodePlacement& place = world_->nodes.at(session.node_rank);
  const std::string line = "node " + std::to_string(session.node_rank) + " (" +
                           node_label(place.address, place.hostname) + ") was lost: its fleetrun " +
                           how;
  Verdict verdict = node_verdict(VerdictKind::kNodeLost, session.node_rank);
  verdict.message = line;
  // Its fleetrun is about to end the rendezvous: the others see that, and look for the next host.
  if (spec().restarts.max_restarts > 0 && id == membership_.host()) return membership_.remove(id);
  if (phase_ != Phase::kRunning) return gone_between(id, verdict, now);
  if (spec().restarts.max_restarts > 0) membership_.remove(id);
  // Where its parameter servers still serve the others, a node has not done its part.
  const bool serves = world_->nodes.at(session.node_rank).servers > 0;
  if (session.finished && !serves) return;
  if (stop_) {  // on the way out already: the stop stays the verdict
    say_all(PeerEvent{PeerEvent::Kind::kLost, session.node_rank, verdict.node, line});
    return session.finished ? void() : one_less(now);
  }
  lost_ = verdict;
  causes_.node_lost(session.node_rank, how, since);
  decide_cause(now);
}

void JobState::shut_down(Time now) {
  if (spec().restarts.max_restarts > 0 && phase_ != Phase::kForming) return;  // the others go on
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
                        " nodes came within " + seconds(times_.timeout) + ": " +
                        membership_.present() + "; missing: " + membership_.missing(),
                    "rendezvous of job '" + spec().job_id + "' at " + reach_,
                    "start fleetrun on the missing ones too, see that they can reach " + reach_ +
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
  // The host's own node beats through the same threads and over no network: where it is late too,
  // it is this process that does not get to hear anybody.
  const auto host = membership_.host();
  const auto own = host ? sessions_.find(*host) : sessions_.end();
  if (own != sessions_.end()) now = std::min(now, own->second.last_heard + 2 * pace().beat);
  while (!by_silence_.empty()) {
    const SessionId id = by_silence_.front();
    if (now - sessions_.at(id).last_heard < pace().silence) return;
    const int rank = sessions_.at(id).node_rank;
    const std::string how = "was silent for " + seconds(pace().silence);
    Verdict verdict;  // of the world that it was in: without it the next one may begin at once
    if (rank >= 0) {
      verdict = node_verdict(VerdictKind::kNodeLost, rank);
      verdict.message = "node " + std::to_string(rank) + " (" + verdict.node + ") " + how;
    }
    node_gone(id, how, sessions_.at(id).last_heard, now);
    // Should it wake up again, it hears what became of it.
    if (rank < 0) {
      say(id, Refusal{Error(ErrorCode::kPeerLost, how, "this node's connection")}, true);
    } else {
      say(id, verdict_ ? *verdict_ : verdict, true);
    }
  }
}

void JobState::advance(Time now) {
  // A host that slept itself (stopped, suspended, starved) has not heard the beats that wait in its
  // sockets: nobody is to blame for that time.
  const auto passed = now - last_advance_;
  last_advance_ = now;
  if (passed > std::min(3 * pace().beat, pace().silence / 2)) {
    for (auto& [id, session] : sessions_)
      session.last_heard = std::min(now, session.last_heard + passed);
  }
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
    // Not at once again where somebody silent is not to blame.
    const auto least = times_.beat / 8;
    next = std::clamp(silent, last_advance_ + least,
                      last_advance_ + std::max(least, std::min(pace().beat, kLook)));
  }
  if (phase_ == Phase::kRunning) next = std::min(next, cause_due());
  if (phase_ == Phase::kForming) next = std::min({next, started_ + times_.timeout, next_progress_});
  return next;
}

}  // namespace fleet
