// A node's side of the rendezvous: one stream that joins, sends heartbeats, reports exits and
// receives the job's outcome.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/security.h"
#include "rendezvous/types.h"

namespace fleet {

class JobHost;

struct RendezvousClientOptions {
  std::string address;  // of the rendezvous, "10.0.0.1:6768" or "[::1]:6768"
  // How long to try to reach the host. Once it is reached, its own --rdzv_timeout decides.
  std::chrono::milliseconds timeout{300'000};
  std::chrono::milliseconds first_progress{2'000};     // delay of the first waiting line
  std::chrono::milliseconds progress_every{10'000};    // interval of the next ones
  std::chrono::milliseconds heartbeat_timeout{3'000};  // --heartbeat_timeout, for the connection
  Security security;                                   // the host's
  std::shared_ptr<JobHost> host;  // set on the node that hosts the rendezvous: no connection needed
};

// Thread safety: any thread may make any call, also from within the callback. Only join() and
// leave() block. Events arrive one at a time, in order, on a gRPC thread: post them to your loop.
// No event arrives after leave() has returned.
class RendezvousClient {
 public:
  class Impl;
  using OnEvent = std::function<void(RendezvousEvent)>;

  RendezvousClient(RendezvousClientOptions options, OnEvent on_event);
  ~RendezvousClient();  // leave()
  RendezvousClient(const RendezvousClient&) = delete;

  // Connects, retrying until the timeout, and joins. Call it once. The outcome is an event:
  // Assignment or Refusal (or Verdict, if the job was stopped while forming).
  void start(NodeInfo info);
  // Calls start() and waits for the outcome. The callback receives the events as well. Throws the
  // Refusal's error; kPeerLost with the verdict's message if the job ended while forming, or if
  // leave() was called meanwhile. Do not call it from within the callback.
  Assignment join(NodeInfo info);

  // Sends a message of this node, any but Join, Heartbeat and Leave. It is dropped if the stream is
  // gone. Report failures of ranks as they happen: their order and times (RankExit.at_ns, on this
  // node's clock) decide the verdict. The time of a StopRequest is filled in.
  void send(wire::NodeMessage message);
  // Connects to the rendezvous that this node has opened after a TakeOver.
  void follow(const std::string& address, std::shared_ptr<JobHost> host);
  // Sends a goodbye and closes the stream; waits briefly until the goodbye is sent. A node that
  // leaves a running job before Finished and before a verdict counts as lost. Idempotent. Returns
  // without waiting if called from within the callback.
  void leave();

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace fleet
