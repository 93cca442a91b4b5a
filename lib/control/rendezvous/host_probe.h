// The host's own session over the network: it measures how late the host takes in what its peers
// send. A starved host then blames no peer (JobState: TakenIn).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "rendezvous/node_transport.h"
#include "transport/ticker.h"

namespace fleet {

// Sends heartbeats that pass through the same sockets and threads as those of the nodes. What had
// arrived before one of them is taken in when it is. Thread-safe.
class HostProbe final : public NodeStreamOwner, public std::enable_shared_from_this<HostProbe> {
  struct Private {};

 public:
  // transport: to this host, over the network. token: JobHost::probe_token(). Connects again if it
  // must. Destroying the last returned pointer calls stop().
  static std::shared_ptr<HostProbe> start(NodeTransport transport, uint64_t token,
                                          std::chrono::milliseconds interval);
  HostProbe(Private, NodeTransport transport, uint64_t token, std::chrono::milliseconds interval);
  void stop() FLEET_EXCLUDES(mutex_);  // closes the session; idempotent

 private:
  void on_message(NodeStream*, wire::HostMessage) override {}
  void on_stream_end(NodeStream* stream, const StreamEnd& how) override FLEET_EXCLUDES(mutex_);
  Ticker::Time tick() FLEET_EXCLUDES(mutex_);

  const NodeTransport transport_;
  const uint64_t token_;
  const std::chrono::milliseconds interval_;
  Mutex mutex_;
  NodeStream* stream_ FLEET_GUARDED_BY(mutex_) = nullptr;  // lives until its on_stream_end()
  bool stopped_ FLEET_GUARDED_BY(mutex_) = false;
  Ticker ticker_;  // last: it uses the rest
};

// How often to send: the host notices a silence that much later.
std::chrono::milliseconds probe_interval_for(std::chrono::milliseconds heartbeat_interval);

}  // namespace fleet
