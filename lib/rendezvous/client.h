// A node's side of the rendezvous: one stream that joins, beats, reports and hears how the job
// ends.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/security.h"
#include "rendezvous/types.h"

namespace fleet {

struct RendezvousClientOptions {
  std::string address;  // of the rendezvous, "10.0.0.1:6768" or "[::1]:6768"
  // How long to try to reach it. Once reached, the host's own --rdzv_timeout decides.
  std::chrono::milliseconds timeout{300'000};
  std::chrono::milliseconds first_progress{2'000};   // when the first waiting line comes
  std::chrono::milliseconds progress_every{10'000};  // and the next ones
  std::chrono::milliseconds patience{3'000};         // --heartbeat_timeout, for the connection
  Security security;                                 // the host's
};

// Thread safety: every call may come from any thread, also from within the callback; none blocks
// but join() and leave(). Events come one at a time, in order, on a gRPC thread: post them to your
// loop. No event comes after leave() returned.
class RendezvousClient {
 public:
  class Impl;
  using OnEvent = std::function<void(RendezvousEvent)>;

  RendezvousClient(RendezvousClientOptions options, OnEvent on_event);
  ~RendezvousClient();  // leave()
  RendezvousClient(const RendezvousClient&) = delete;

  // Connects, retrying until the timeout, and joins. Once only. The outcome is an event: Assignment
  // or Refusal (or Verdict, where the job was stopped while forming).
  void start(NodeInfo info);
  // start() and wait for the outcome. The events come to the callback as well. Throws the Refusal's
  // error; kPeerLost with the verdict's message where the job ended while forming, or where leave()
  // came meanwhile. Not from within the callback.
  Assignment join(NodeInfo info);

  // A rank of this node ended. Report failures as they happen, in their order: the first in the job
  // is the verdict. Ranks that ended well need not be reported.
  void report(RankExit exit);
  // All ranks of this node have ended and were reported. The job succeeds when every node has said
  // so.
  void finish();
  // This node cannot go on with its part, `how` ("its guardian was killed"): to the job it is lost.
  // The Verdict still comes, and of this node it is the last event, also where the job goes on.
  void report_failure(const std::string& how);
  // The rendezvous that this node has opened after a TakeOver.
  void follow(const std::string& address);
  // Nothing of this epoch is left on this node: the answer to a RestartOrder.
  void ready(int epoch);
  // A rank of this node makes no progress: every node hears a StackOrder and answers it with the
  // stacks of its ranks; then comes the verdict.
  void report(const RankStall& stall);
  // How far ranks of this node have come: slow ones are named to every node.
  void report(const std::vector<RankPace>& pace);
  void send_stacks(const std::vector<RankStack>& stacks);
  // This launcher was told to stop: every node hears a StopOrder, the verdict comes when all have
  // finished.
  // `kill`: asked again; what still runs is killed.
  void request_stop(int signal, bool kill = false);
  // Every node hears a SignalOrder.
  void request_signal(int signal);
  // What all ranks of the job do: the answer is a StackReport, within some seconds. None comes
  // where the job ends before.
  void request_stacks();
  // Says goodbye and closes the stream; waits briefly until that is out. A node that leaves a
  // running job before finish() and before a verdict counts as lost. Idempotent. From within the
  // callback it returns without waiting.
  void leave();

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace fleet
