#include "rendezvous/host_probe.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace fleet {
namespace {

wire::NodeMessage heartbeat(uint64_t token, Ticker::Time now) {
  wire::NodeMessage message;
  message.mutable_heartbeat()->set_probe(token);
  message.mutable_heartbeat()->set_sent_ns(steady_ns(now));
  return message;
}

}  // namespace

std::chrono::milliseconds probe_interval_for(std::chrono::milliseconds heartbeat_interval) {
  return std::clamp(heartbeat_interval / 4, std::chrono::milliseconds(20),
                    std::chrono::milliseconds(500));
}

HostProbe::HostProbe(Private, NodeTransport transport, uint64_t token,
                     std::chrono::milliseconds interval)
    : transport_(std::move(transport)),
      token_(token),
      interval_(interval),
      ticker_([this] { return tick(); }) {}

std::shared_ptr<HostProbe> HostProbe::start(NodeTransport transport, uint64_t token,
                                            std::chrono::milliseconds interval) {
  auto owner = std::make_shared<HostProbe>(Private(), std::move(transport), token, interval);
  HostProbe* const probe = owner.get();
  probe->ticker_.due_by(std::chrono::steady_clock::now());
  return {probe, [owner = std::move(owner)](HostProbe*) { owner->stop(); }};
}

Ticker::Time HostProbe::tick() {
  const MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (stopped_) return Ticker::Time::max();
  if (stream_) {
    stream_->send(heartbeat(token_, now));
  } else {  // gRPC itself limits how often it connects
    stream_ = transport_(shared_from_this(), heartbeat(token_, now));
  }
  return now + interval_;
}

void HostProbe::on_stream_end(NodeStream*, const StreamEnd& how) {
  const MutexLock lock(mutex_);
  stream_ = nullptr;
  if (!stopped_) spdlog::debug("the host does not reach its own port: {}", how.reason);
}

void HostProbe::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    if (stream_) stream_->cancel();
  }
  ticker_.stop();
}

}  // namespace fleet
