#include "rendezvous/job_nodes.h"

#include <algorithm>

namespace fleet {
namespace {

using std::chrono::milliseconds;

// Other deadlines may arrive this soon even if heartbeats are slow.
constexpr milliseconds kMaxAdvanceInterval{500};

// A datagram is sent twice.
constexpr int kWithDatagrams = 3;
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
  const int64_t arriving = nnodes * (nnodes < kLargeJob ? kWithDatagrams : 1);
  const milliseconds affordable((arriving * 1'000 + kHeartbeatsPerSecond - 1) /
                                kHeartbeatsPerSecond);
  times.heartbeat_interval = std::max(times.heartbeat_interval, affordable);
  // Streams lose no message: the margin is for links that are away for seconds.
  const milliseconds margin =
      std::max<milliseconds>(times.max_silence / 2, times.heartbeat_interval * 3 / 5);
  times.max_silence = std::max(times.max_silence, times.heartbeat_interval + margin);
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
      last_poll_(now),
      started_up_(times.startup_max_silence.count() == 0) {}

const std::string& JobNodes::address(SessionId member) const {
  return membership_.members().at(member).node().address();
}

void JobNodes::open(SessionId session, Moment at) {
  sessions_.insert_or_assign(session, Session{at.now, at.steady});
  silence_due_ = std::min(silence_due_, at.now + intervals().max_silence);
}

JobNodes::Session* JobNodes::find(SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

void JobNodes::admit(SessionId session, Moment at) {
  find(session)->member = true;
  touch_member(session, at);
  send(session, welcome());
}

JobNodes::Session* JobNodes::touch_member(SessionId session, Moment at) {
  Session* const found = find(session);
  if (!found || !found->member) return nullptr;
  found->heard = at.now;
  found->arrived = at.steady;
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

void JobNodes::end_startup(Moment at) {
  if (started_up_) return;
  if (!startup_ends_at_) startup_ends_at_ = at.now + times_.startup_time;
  if (at.now < *startup_ends_at_) return;
  started_up_ = true;
  for (auto& [id, session] : sessions_) {
    session.heard = at.now;
    session.arrived = at.steady;
  }
  silence_due_ = Time::min();
  broadcast(welcome());
}

milliseconds JobNodes::poll_interval() const {
  return std::min(intervals().heartbeat_interval, kMaxAdvanceInterval);
}

std::vector<std::pair<JobNodes::Time, SessionId>> JobNodes::find_silent(Time now, Time taken_in) {
  last_poll_ = now;
  std::vector<std::pair<Time, SessionId>> silent;
  // Messages only defer the deadlines: most calls need not look at thousands of sessions.
  if (taken_in < silence_due_) return silent;
  silence_due_ = Time::max();
  for (const auto& [id, session] : sessions_) {
    const Time deadline = silence_deadline(session);
    if (taken_in >= deadline) silent.emplace_back(session.arrived, id);
    silence_due_ = std::min(silence_due_, deadline);
  }
  std::ranges::sort(silent);  // the longest silent one may be the root cause
  return silent;
}

JobNodes::Time JobNodes::next_poll(Time due) const {
  // Avoids an immediate repeat when a silent node cannot be blamed, or failures await its loss.
  const auto most = std::max(poll_interval(), milliseconds(1));
  const auto least = std::min(times_.heartbeat_interval / 8, most);
  return std::min(std::clamp(silence_due_, last_poll_ + least, last_poll_ + most),
                  due > last_poll_ ? due : last_poll_ + least);
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
  if (!info.has_job()) return;
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
