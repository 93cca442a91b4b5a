// A node's side of the rendezvous: one stream that joins, sends heartbeats, reports exits and
// receives the job's outcome.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/running_clock.h"
#include "rendezvous/clock_offset.h"
#include "rendezvous/host_monitor.h"
#include "rendezvous/host_search.h"
#include "rendezvous/known_job.h"
#include "rendezvous/node_transport.h"
#include "rendezvous/types.h"
#include "transport/background.h"
#include "transport/bounded_queue.h"
#include "transport/security.h"
#include "transport/ticker.h"

namespace fleet {

class JobHost;

struct RendezvousClientOptions {
  std::string address;  // the rendezvous: "10.0.0.1:6768" or "[::1]:6768"
  // How long to try to reach the host. Once it is reached, its own --rdzv_timeout decides.
  std::chrono::milliseconds timeout{300'000};
  std::chrono::milliseconds first_progress{2'000};      // delay of the first waiting line
  std::chrono::milliseconds progress_every{10'000};     // interval of the next ones
  std::chrono::milliseconds heartbeat_timeout{15'000};  // --heartbeat_timeout, for the connection
  Security security;                                    // the host's
  bool restarts = false;                                // the job may continue without a lost node
  // --elastic_timeout: after the loss of the host, how long to look for the job.
  std::chrono::milliseconds elastic_timeout{30'000};
  std::shared_ptr<JobHost> host;  // set on the node that hosts the rendezvous: no connection needed
  // Where the running job may have its rendezvous instead. Asked while the host cannot be reached
  // and this node has no world.
  std::vector<std::string> other_addresses = {};
};

// Thread safety: any thread may make any call, also from within the callback. Only join() and
// leave() block. Events arrive one at a time, in order, on a thread of gRPC or on the ticker's:
// post them to your loop. No event arrives after leave() has returned.
class RendezvousClient : public NodeStreamOwner,
                         public std::enable_shared_from_this<RendezvousClient> {
  struct Private {};

 public:
  using Clock = std::chrono::steady_clock;
  using OnEvent = std::function<void(RendezvousEvent)>;

  // Destroying the last returned pointer calls leave(). Streams that are still closing keep the
  // object alive.
  static std::shared_ptr<RendezvousClient> make(RendezvousClientOptions options, OnEvent on_event);
  RendezvousClient(Private, RendezvousClientOptions options, OnEvent on_event);

  // Connects, retrying until the timeout, and joins. Call it once. The outcome is an event:
  // Assignment or Refusal (or Verdict, if the job was stopped while forming).
  void start(wire::Join join);
  // Calls start() and waits for the outcome. The callback receives the events as well. Throws the
  // Refusal's error; kPeerLost with the verdict's message if the job ended while forming, or if
  // leave() was called in between. Do not call it from within the callback.
  Assignment join(wire::Join join);

  // Sends a message of this node, any but Join, Heartbeat and Leave. It is dropped if the stream is
  // gone. Report failures of ranks as they happen: their order and times (RankExit.at_ns, on this
  // node's clock) decide the verdict. The time of a StopRequest is filled in.
  void send(wire::NodeMessage message);
  // The host's clock when this node's shows `own_ns`; nullopt: not compared yet.
  std::optional<ClockOffset::Estimate> host_clock(int64_t own_ns) FLEET_EXCLUDES(mutex_);
  // Connects to the rendezvous that this node has opened after a TakeOver. If another node hosts
  // the job by then, StepDown follows.
  void follow(const std::string& address, std::shared_ptr<JobHost> host);
  // Sends a goodbye and closes the stream; waits briefly until the goodbye is sent. A node that
  // leaves a running job before Finished and before a verdict counts as lost. Idempotent. Returns
  // without waiting if called from within the callback.
  void leave();

 private:
  // Not started; without a Welcome (or waiting to connect again); welcomed, without a running world
  // (a spare too); in a running world; ended.
  enum class Phase { kIdle, kConnecting, kForming, kRunning, kEnded };

  // Called by the stream.
  void on_message(NodeStream* stream, wire::HostMessage message) override FLEET_EXCLUDES(mutex_);
  void on_stream_end(NodeStream* stream, const StreamEnd& how) override FLEET_EXCLUDES(mutex_);

  void on_host_message(const NodeStream& stream, wire::HostMessage message, Clock::time_point now)
      FLEET_REQUIRES(mutex_);
  void on_welcome(const NodeStream& stream, const wire::Welcome& welcome, Clock::time_point now)
      FLEET_REQUIRES(mutex_);
  void on_refusal(Refusal refusal, Clock::time_point now) FLEET_REQUIRES(mutex_);
  Clock::time_point tick() FLEET_EXCLUDES(mutex_);
  // Judges the host, and sends a heartbeat if one is due.
  void send_heartbeat(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void on_assignment(wire::Assignment message) FLEET_REQUIRES(mutex_);
  void begin_generation(int generation) FLEET_REQUIRES(mutex_);

  // Without a connection (client_connecting.cc).
  void begin_connecting(Clock::time_point now) FLEET_REQUIRES(mutex_);
  // A stream has failed, or ended while the job forms.
  void connect_again(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void connect() FLEET_REQUIRES(mutex_);
  void connect_by(Clock::time_point time) FLEET_REQUIRES(mutex_);
  void drop_stream() FLEET_REQUIRES(mutex_);
  void retry_connect(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void rejoin(const std::string& why) FLEET_REQUIRES(mutex_);
  // Starts a call that may block, in the background.
  void probe_host(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void look_for_mismatch() FLEET_EXCLUDES(mutex_);  // after a failed connection: a wrong secret?
  void ask_other_addresses(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void on_other_address(const std::string& address, const std::optional<wire::DescribeReply>& reply)
      FLEET_EXCLUDES(mutex_);
  // The host to use from now on; `host`: it is in this process.
  void set_host(const std::string& address, std::shared_ptr<JobHost> host = nullptr)
      FLEET_REQUIRES(mutex_);

  // After the loss of the host (client_failover.cc).
  void host_lost(const std::string& how) FLEET_REQUIRES(mutex_);
  void lose_host(std::string message) FLEET_REQUIRES(mutex_);
  Clock::time_point search_for_host(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void carry_out(const HostSearch::Step& step, Clock::time_point now) FLEET_REQUIRES(mutex_);
  void ask(int node) FLEET_REQUIRES(mutex_);
  void on_answer(int node, const std::optional<wire::DescribeReply>& reply) FLEET_EXCLUDES(mutex_);
  void found_host_gone(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void leave_own_host() FLEET_REQUIRES(mutex_);
  void give_up_failover() FLEET_REQUIRES(mutex_);

  void emit(RendezvousEvent event) FLEET_REQUIRES(mutex_);
  void end(RendezvousEvent event) FLEET_REQUIRES(mutex_);  // a Refusal or a Verdict
  void leave_stream() FLEET_REQUIRES(mutex_);
  // Runs the callback for queued events.
  void deliver() FLEET_EXCLUDES(mutex_);

  const RendezvousClientOptions options_;
  const OnEvent on_event_;
  Mutex mutex_;
  CondVar changed_;
  Phase phase_ FLEET_GUARDED_BY(mutex_) = Phase::kIdle;
  bool left_ FLEET_GUARDED_BY(mutex_) = false;
  wire::Join join_ FLEET_GUARDED_BY(mutex_);
  NodeTransport transport_ FLEET_GUARDED_BY(mutex_);
  NodeStream* stream_ FLEET_GUARDED_BY(mutex_) = nullptr;  // lives until its on_stream_end()
  std::string last_reason_ FLEET_GUARDED_BY(mutex_);
  bool probe_pending_ FLEET_GUARDED_BY(mutex_) = false;
  Clock::time_point next_probe_ FLEET_GUARDED_BY(mutex_);
  RunningDeadline deadline_ FLEET_GUARDED_BY(mutex_){{}, {}};  // while connecting
  Clock::time_point next_attempt_ FLEET_GUARDED_BY(mutex_);
  Clock::time_point next_progress_ FLEET_GUARDED_BY(mutex_);
  Clock::time_point next_lookup_ FLEET_GUARDED_BY(mutex_);
  HostMonitor monitor_ FLEET_GUARDED_BY(mutex_);
  KnownJob job_ FLEET_GUARDED_BY(mutex_);
  int host_ FLEET_GUARDED_BY(mutex_) = 0;         // rank in the last world of the followed host
  int lost_ FLEET_GUARDED_BY(mutex_) = 0;         // likewise for the lost host
  std::string address_ FLEET_GUARDED_BY(mutex_);  // the followed host's
  std::optional<HostSearch> search_ FLEET_GUARDED_BY(mutex_);  // set while the host is lost
  // The host's own report of its end, if any.
  std::string reported_loss_ FLEET_GUARDED_BY(mutex_);
  std::string loss_message_ FLEET_GUARDED_BY(mutex_);     // how the host was lost
  bool stop_commanded_ FLEET_GUARDED_BY(mutex_) = false;  // set: no failover follows
  // Why there is or will be no assignment.
  std::optional<Error> failure_ FLEET_GUARDED_BY(mutex_);
  BoundedQueue<RendezvousEvent> events_ FLEET_GUARDED_BY(mutex_);
  // The thread that runs the callback now.
  std::thread::id callback_thread_ FLEET_GUARDED_BY(mutex_);
  Background background_;
  Ticker ticker_;  // last: it uses the rest
};

}  // namespace fleet
