// The client behind RendezvousClient: connects, keeps the stream alive, turns messages into events.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "rendezvous/client.h"
#include "rendezvous/clock_offset.h"
#include "rendezvous/datagram_heartbeats.h"
#include "rendezvous/election.h"
#include "rendezvous/node_transport.h"
#include "rendezvous/ticker.h"
#include "rendezvous/wire.h"

namespace fleet {

class RendezvousClient::Impl : public NodeStreamOwner,
                               public std::enable_shared_from_this<RendezvousClient::Impl> {
 public:
  using Clock = std::chrono::steady_clock;
  Impl(RendezvousClientOptions options, OnEvent on_event);

  void start(NodeInfo info);
  Assignment wait_for_outcome();
  void follow(const std::string& address, std::shared_ptr<JobHost> host);
  void send(wire::NodeMessage message);  // dropped if there is no stream any more
  void report(RankExit exit);
  void request_stop(int signal, bool kill);
  void leave();
  void close();  // call before the owner is destroyed

 private:
  // No stream; a stream without a Welcome yet; welcomed; assigned; ended.
  enum class Phase { kIdle, kConnecting, kForming, kRunning, kEnded };

  // Called by the stream, without the lock.
  void on_message(NodeStream* stream, const wire::HostMessage& message) override;
  void on_stream_end(NodeStream* stream, const StreamEnd& end) override;

  Clock::time_point tick();
  void probe_host();  // after a failed connection: the secret may be wrong
  // The functions below need the lock.
  void note_received(Clock::time_point now);
  void connect();
  void retry_connect(Clock::time_point now);
  void rejoin(const std::string& why);
  void send_heartbeat(Clock::time_point now);
  void on_assignment(Assignment assignment, int generation);
  void begin_generation(int generation);
  void host_lost(const std::string& how);
  void continue_failover(Clock::time_point now);
  void try_next_host(Clock::time_point now);
  void give_up_failover();
  bool is_committed() const;  // whether the last received world counts
  FailoverState failover_state(Clock::time_point now) const;
  // The host to use from now on; `host`: it is in this process.
  void set_host(const std::string& address, std::shared_ptr<JobHost> host = nullptr);
  void do_failover_step(Clock::time_point now);
  void emit(RendezvousEvent event);
  void end(RendezvousEvent event);
  void leave_stream();
  void deliver();  // runs the callback for queued events; without the lock

  const RendezvousClientOptions options_;
  const OnEvent on_event_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::kIdle;
  bool left_ = false;
  NodeInfo info_;
  std::unique_ptr<NodeTransport> transport_;
  NodeStream* stream_ = nullptr;  // lives until its on_stream_end()
  std::string last_reason_;
  bool probe_pending_ = false;
  Clock::time_point next_probe_, deadline_, next_attempt_, next_progress_, last_received_,
      last_tick_;
  Clock::time_point next_tick_ = Clock::time_point::max();
  Welcome times_;
  NodeHeartbeats datagrams_;
  ClockOffset host_clock_;
  Clock::duration longest_gap_{};  // longest gap between messages of the host while the job runs
  uint64_t heartbeats_sent_ = 0;
  SharedWorld world_, committed_;  // the last one received, and the last known to count
  int node_rank_ = -1;             // in the first
  int host_ = 0, lost_ = 0;        // ranks in world_: the followed host; the lost host
  std::string address_;            // of the followed host
  std::optional<FailoverSearch>
      failover_;                 // set while the host is lost: the candidates for the next
  std::string reported_loss_;    // the host's own report of its end, if any
  std::string loss_message_;     // how the host was lost
  bool stop_commanded_ = false;  // set: no failover follows
  Clock::time_point generation_start_;
  std::vector<GenerationResult> history_;         // as far as this node has received it
  std::optional<Assignment> pending_assignment_;  // of a generation that has not begun
  int pending_generation_ =
      0;  // kept apart so that pending_assignment_'s world, which may be large, stays packed
  std::optional<Assignment> assignment_;
  std::optional<Error> failure_;  // why there is or will be no assignment
  std::deque<RendezvousEvent> events_;
  std::thread::id callback_thread_;  // the thread that runs the callback now
  Ticker ticker_;                    // last: it uses the rest
};

}  // namespace fleet
