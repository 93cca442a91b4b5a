// JobState: the sessions of nodes and their heartbeats.
#include <algorithm>
#include <utility>

#include "rendezvous/job_state.h"
#include "transport/control_messages.h"

namespace fleet {
namespace {

// Other deadlines may arrive this soon even if heartbeats are slow.
constexpr std::chrono::milliseconds kMaxAdvanceInterval{500};

}  // namespace

void JobState::refuse(SessionId session, const Error& error) {
  sessions_.erase(session);
  send(session, envelope(&wire::HostMessage::mutable_refused, to_wire(error)), true);
}

// The member of this session; nullptr if the connection has not joined, in which case its messages
// are ignored.
JobState::Session* JobState::touch_member(SessionId session, Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || !found->second.member) return nullptr;
  found->second.failure_detector.received(now);
  return &found->second;
}

bool JobState::is_member(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.member;
}

HeartbeatTimes JobState::current_intervals() const {
  return started_up_
             ? HeartbeatTimes{times_.heartbeat_interval, times_.max_silence}
             : HeartbeatTimes{times_.startup_heartbeat_interval, times_.startup_max_silence};
}

wire::HostMessage JobState::welcome() const {
  const HeartbeatTimes times = current_intervals();
  wire::HostMessage message;
  message.mutable_welcome()->set_heartbeat_interval_ms(
      static_cast<int>(times.heartbeat_interval.count()));
  message.mutable_welcome()->set_max_silence_ms(static_cast<int>(times.max_silence.count()));
  return message;
}

void JobState::end_startup(Time now) {
  if (started_up_ || !in<Running>()) return;
  if (!startup_ends_at_) startup_ends_at_ = now + times_.startup_time;
  if (now < *startup_ends_at_) return;
  started_up_ = true;
  for (auto& [id, session] : sessions_) {
    session.failure_detector.set_times(current_intervals());
    session.failure_detector.received(now);
  }
  broadcast(welcome());
}

void JobState::expire_silent_sessions(Time now) {
  for (auto& [id, session] : sessions_) session.failure_detector.poll(now);
  // The host's own node sends heartbeats through the same threads and no network. If it is late
  // too, this process is starved.
  const auto host = membership_.host();
  const auto own = host ? sessions_.find(*host) : sessions_.end();
  if (own != sessions_.end()) {
    now = std::min(now, own->second.failure_detector.last_received() +
                            2 * current_intervals().heartbeat_interval);
  }
  std::vector<std::pair<Time, SessionId>> silent;
  silence_due_ = Time::max();
  for (const auto& [id, session] : sessions_) {
    const FailureDetector& detector = session.failure_detector;
    if (now >= detector.deadline()) silent.emplace_back(detector.last_received(), id);
    silence_due_ = std::min(silence_due_, detector.deadline());
  }
  std::ranges::sort(silent);  // the longest silent one may be the root cause
  const std::string how = "was silent for " + seconds_text(current_intervals().max_silence);
  for (const auto& [since, id] : silent) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) continue;
    std::optional<Verdict> lost;  // in terms of the world that it belongs to
    if (found->second.node_rank >= 0) lost = lost_verdict(id, "its fleetrun " + how);
    on_node_gone(id, "its fleetrun " + how, since, now);
    // If it wakes up again, it learns the outcome. A node that was waiting may join again.
    if (lost) {
      send_farewell(id, *lost);
    } else {
      refuse(id, Error(ErrorCode::kPeerLost, how, "this node's connection"));
    }
  }
}

JobState::Time JobState::next_deadline() const {
  const Time last = suspension_.last_poll();
  // Avoids an immediate repeat when a silent node is not to blame, or failures await its loss.
  const auto least = times_.heartbeat_interval / 8;
  const auto most =
      std::max(least, std::min(current_intervals().heartbeat_interval, kMaxAdvanceInterval));
  Time next = std::clamp(silence_due_, last + least, last + most);
  if (const auto* running = in<Running>()) {
    const Time due = running->root_cause.due();
    next = std::min(next, due > last ? due : last + least);
  }
  if (const auto* forming = in<Forming>()) {
    next = std::min({next, forming->began + times_.timeout, forming->next_progress});
  }
  return next;
}

}  // namespace fleet
