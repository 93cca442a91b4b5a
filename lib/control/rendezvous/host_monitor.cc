#include "rendezvous/host_monitor.h"

#include <algorithm>

#include "base/clock.h"
#include "rendezvous/random_delay.h"

namespace fleet {
namespace {

// All nodes of a job together compare their clocks this often.
constexpr int kSamplesPerSecond = 250;
// Up to this many nodes, the first heartbeats may coincide.
constexpr int kFewNodes = 64;

template <typename Message>
void put_on_host_clock(const ClockOffset& clock, Message* message) {
  const auto at = clock.at(message->at_ns());
  const bool known = at && message->at_ns() != 0;
  message->clear_at_ns();
  message->clear_at_error_ns();
  if (!known) return;
  message->set_at_ns(at->host_ns);
  message->set_at_error_ns(at->error_ns);
}

}  // namespace

void HostMonitor::on_welcome(const wire::Welcome& welcome, const std::string& peer, int nodes,
                             Time now) {
  detector_.set_times({std::chrono::milliseconds(welcome.heartbeat_interval_ms()),
                       std::chrono::milliseconds(welcome.max_silence_ms())});
  if (!peer.empty()) datagrams_.open(peer, welcome.session(), welcome.heartbeat_key());
  nodes_ = nodes;
  // The first heartbeat also compares the clocks. In a large job all nodes are welcomed at once: a
  // random phase spreads their heartbeats.
  const std::chrono::microseconds interval = times().heartbeat_interval;
  next_heartbeat_ = now + (nodes <= kFewNodes ? interval * 0 : random_below(interval));
  next_sample_ = now;
}

void HostMonitor::received(Time now, bool job_runs) {
  if (job_runs) longest_silence_ = std::max(longest_silence_, now - detector_.last_received());
  detector_.received(now);
}

void HostMonitor::on_echo(const wire::Heartbeat& echo, Time now) {
  clock_.sample(echo.sent_ns(), echo.host_ns(), steady_ns(now));
}

bool HostMonitor::is_alive(Time now, bool job_runs) {
  if (datagrams_.receive()) received(now, job_runs);
  return detector_.poll(now);
}

std::optional<wire::NodeMessage> HostMonitor::take_heartbeat(Time now) {
  if (now < next_heartbeat_) return std::nullopt;
  next_heartbeat_ = now + times().heartbeat_interval;
  wire::NodeMessage message;
  message.mutable_heartbeat()->set_count(++sent_);
  message.mutable_heartbeat()->set_sent_ns(steady_ns(now));
  if (now >= next_sample_) {
    message.mutable_heartbeat()->set_sample(true);
    next_sample_ = now + std::chrono::milliseconds(1'000) * nodes_ / kSamplesPerSecond;
  }
  datagrams_.send();
  return message;
}

HostMonitor::Time HostMonitor::due(Time now) const {
  return std::min(next_heartbeat_, detector_.next_poll(now));
}

void HostMonitor::use_host_clock(wire::RankExit* exit) const { put_on_host_clock(clock_, exit); }

void HostMonitor::use_host_clock(wire::StopRequest* request) const {
  put_on_host_clock(clock_, request);
}

}  // namespace fleet
