#include "rendezvous/job_nodes.h"

#include <algorithm>

namespace fleet {
namespace {

using std::chrono::milliseconds;

// Other deadlines may arrive this soon even if heartbeats are slow.
constexpr milliseconds kMaxAdvanceInterval{500};

constexpr int kHeartbeatsPerMs = 8;
constexpr milliseconds kStartupHeartbeatInterval{5'000}, kStartupMaxSilence{30'000},
    kStartupTime{5'000};

}  // namespace

milliseconds heartbeat_interval_for(milliseconds timeout) {
  return std::clamp(timeout / 12, milliseconds(20), milliseconds(1'000));
}

milliseconds max_silence_for(milliseconds timeout) {
  return timeout - heartbeat_interval_for(timeout);
}

JobTimes heartbeat_intervals_for(int nnodes, JobTimes times) {
  times.heartbeat_interval =
      std::max(times.heartbeat_interval, milliseconds(nnodes / kHeartbeatsPerMs));
  times.max_silence = std::max(times.max_silence, 3 * times.heartbeat_interval);
  if (nnodes < kLargeJob) return times;
  times.startup_heartbeat_interval = std::max(times.heartbeat_interval, kStartupHeartbeatInterval);
  times.startup_max_silence = std::max(times.max_silence, kStartupMaxSilence);
  // In a large job the world takes longer to reach all nodes.
  times.startup_time = std::max(kStartupTime, milliseconds(nnodes));
  return times;
}

JobNodes::JobNodes(const JobSpec& spec, const JobTimes& times, Time now)
    : times_(times),
      membership_(spec),
      suspension_(now),
      started_up_(times.startup_max_silence.count() == 0) {}

const std::string& JobNodes::address(SessionId member) const {
  return membership_.members().at(member).node().address();
}

void JobNodes::open(SessionId session, Time now) {
  const FailureDetector detector(intervals(), now);
  sessions_.insert_or_assign(session, Session{detector});
  silence_due_ = std::min(silence_due_, detector.deadline());
}

JobNodes::Session* JobNodes::find(SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

void JobNodes::admit(SessionId session, Time now) {
  Session* const found = find(session);
  found->member = true;
  found->failure_detector.received(now);
  send(session, welcome());
}

JobNodes::Session* JobNodes::touch_member(SessionId session, Time now) {
  Session* const found = find(session);
  if (!found || !found->member) return nullptr;
  found->failure_detector.received(now);
  return found;
}

bool JobNodes::is_member(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.member;
}

std::set<int> JobNodes::ranks_here() const {
  std::set<int> here;
  for (const auto& [id, session] : sessions_) {
    if (session.member && session.node_rank >= 0) here.insert(session.node_rank);
  }
  return here;
}

HeartbeatTimes JobNodes::intervals() const {
  return started_up_
             ? HeartbeatTimes{times_.heartbeat_interval, times_.max_silence}
             : HeartbeatTimes{times_.startup_heartbeat_interval, times_.startup_max_silence};
}

wire::HostMessage JobNodes::welcome() const {
  const HeartbeatTimes times = intervals();
  wire::HostMessage message;
  message.mutable_welcome()->set_heartbeat_interval_ms(
      static_cast<int>(times.heartbeat_interval.count()));
  message.mutable_welcome()->set_max_silence_ms(static_cast<int>(times.max_silence.count()));
  return message;
}

void JobNodes::end_startup(Time now) {
  if (started_up_) return;
  if (!startup_ends_at_) startup_ends_at_ = now + times_.startup_time;
  if (now < *startup_ends_at_) return;
  started_up_ = true;
  for (auto& [id, session] : sessions_) {
    session.failure_detector.set_times(intervals());
    session.failure_detector.received(now);
  }
  broadcast(welcome());
}

JobNodes::Time::duration JobNodes::poll(Time now) {
  return suspension_.poll(now, suspension_limit(intervals()));
}

std::vector<std::pair<JobNodes::Time, SessionId>> JobNodes::find_silent(Time now) {
  for (auto& [id, session] : sessions_) session.failure_detector.poll(now);
  // The host's own node sends heartbeats through the same threads and no network. If it is late
  // too, this process is starved.
  const auto host = membership_.host();
  const Session* const own = host ? find(*host) : nullptr;
  if (own) {
    now = std::min(now, own->failure_detector.last_received() + 2 * intervals().heartbeat_interval);
  }
  std::vector<std::pair<Time, SessionId>> silent;
  silence_due_ = Time::max();
  for (const auto& [id, session] : sessions_) {
    const FailureDetector& detector = session.failure_detector;
    if (now >= detector.deadline()) silent.emplace_back(detector.last_received(), id);
    silence_due_ = std::min(silence_due_, detector.deadline());
  }
  std::ranges::sort(silent);  // the longest silent one may be the root cause
  return silent;
}

JobNodes::Time JobNodes::next_poll(Time due) const {
  const Time last = suspension_.last_poll();
  // Avoids an immediate repeat when a silent node is not to blame, or failures await its loss.
  const auto least = times_.heartbeat_interval / 8;
  const auto most = std::max(least, std::min(intervals().heartbeat_interval, kMaxAdvanceInterval));
  return std::min(std::clamp(silence_due_, last + least, last + most),
                  due > last ? due : last + least);
}

void JobNodes::send(SessionId to, wire::HostMessage message, bool last) {
  outgoing_.push_back({to, std::make_shared<const wire::HostMessage>(std::move(message)), last});
}

void JobNodes::send_world(SessionId to, wire::HostMessage message,
                          std::shared_ptr<const World> world) {
  send(to, std::move(message));
  outgoing_.back().world = std::move(world);
}

void JobNodes::send_to_host(wire::HostMessage message) {
  const auto host = membership_.host();
  if (host && sessions_.contains(*host)) send(*host, std::move(message));
}

void JobNodes::broadcast(wire::HostMessage message, To to) {
  const auto shared = std::make_shared<const wire::HostMessage>(std::move(message));
  for (const auto& [id, session] : sessions_) {
    const bool wanted = to == To::kAll || session.node_rank >= 0;
    if (session.member && wanted) outgoing_.push_back({id, shared});
  }
}

void JobNodes::warn_of_skew(SessionId session) {
  const wire::Join& info = membership_.members().at(session);
  const std::vector<std::string> skew = membership_.skew(info);
  if (skew.empty()) return;
  const wire::HostMessage line = join_progress(
      "node " + info.node().address() + " differs, as --allow_skew allows: " + list_some(skew));
  send(session, line);
  send_to_host(line);
}

void JobNodes::refuse(SessionId session, const Error& error) {
  close(session);
  send(session, envelope(&wire::HostMessage::mutable_refused, to_wire(error)), true);
}

}  // namespace fleet
