// One job at its host: JobState and KvState under a lock, with the time, for the sessions of its
// nodes and the store's callers. Knows nothing of gRPC: make_rendezvous_service() serves it to the
// network, and make_local_transport() to the host's own node. It makes no decisions.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "proto/control.pb.h"
#include "rendezvous/job_state.h"
#include "rendezvous/kv_state.h"
#include "transport/datagram_heartbeats.h"
#include "transport/ticker.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace fleet {

// A serialized wire::HostMessage in parts, which concatenate to it. A message to thousands of nodes
// is encoded once, and they share its parts.
using EncodedMessage = std::vector<std::shared_ptr<const std::string>>;

// The host's end of one node's stream.
class NodeSession {
 public:
  SessionId id() const { return id_; }
  // Both are called under the lock of JobHost; they do not block and do not call it.
  virtual void send(EncodedMessage message) = 0;
  virtual void end() = 0;  // after pending messages; JobHost::on_session_done() follows

 protected:
  ~NodeSession() = default;  // sessions delete themselves

 private:
  friend class JobHost;
  SessionId id_ = 0;                                   // set by JobHost::open()
  std::chrono::steady_clock::time_point last_sent_{};  // to the node
};

// Thread-safe.
class JobHost {
 public:
  using Clock = std::chrono::steady_clock;

  // display_address: the host's address in messages to users, "10.0.0.1:6768". from: state of a
  // host that was lost, or nullptr.
  JobHost(const JobSpec& job, JobTimes times, std::string display_address,
          const FailoverState* from);
  ~JobHost();
  JobHost(const JobHost&) = delete;

  // Enables datagram heartbeats. Call it before the first session.
  void use_datagram_heartbeats(HostHeartbeats datagrams);
  // For Heartbeat.probe of the host's own session over the network (host_probe.h): its heartbeats
  // tell up to which time this host has read all messages. No other process knows it.
  uint64_t probe_token() const { return probe_token_; }
  // Tells all nodes without a verdict that the host ends, and ends every session after its last
  // message. Waits for that up to `drain`.
  void shut_down(std::chrono::milliseconds drain);

  // --- Sessions ---
  // Registers the session. It is ended at once if there are too many, or the host shuts down:
  // returns false.
  bool open(NodeSession* session);
  // Returns false if the message is invalid, or caused an internal error: the session is ended
  // then.
  bool on_message(NodeSession* session, wire::NodeMessage message);
  void on_stream_closed(NodeSession* session);  // by the node: no message follows
  void on_session_done(NodeSession* session);   // the last call of a session

  // --- The store and Describe ---
  std::optional<Error> set(const wire::SetRequest& request);
  KvState::Answer add(const wire::AddRequest& request);
  // The ticket, for cancel(), is set before the answer.
  void get(const wire::GetRequest& request, KvState::Ticket* ticket, KvState::Done done);
  bool cancel(KvState::Ticket ticket);  // returns whether it was still waiting
  wire::DescribeReply describe();

 private:
  // Runs `work` under the lock; then runs the store's answers without it.
  template <typename Work>
  void run(Work work) FLEET_NO_THREAD_SAFETY_ANALYSIS;
  void step(JobEvent event, Clock::time_point now) FLEET_REQUIRES(mutex_);
  void send(NodeSession* session, EncodedMessage message, Clock::time_point now)
      FLEET_REQUIRES(mutex_);
  void echo(NodeSession* session, const wire::Heartbeat& heartbeat, Clock::time_point now)
      FLEET_REQUIRES(mutex_);
  void on_probe(NodeSession* session, const wire::Heartbeat& probe, Clock::time_point now)
      FLEET_REQUIRES(mutex_);
  Clock::time_point next_deadline() FLEET_REQUIRES(mutex_);
  void receive_datagrams(Clock::time_point now) FLEET_REQUIRES(mutex_);
  void close_store_if_over() FLEET_REQUIRES(mutex_);
  std::optional<Error> check_caller(const wire::Caller& caller) const FLEET_REQUIRES(mutex_);
  Clock::time_point tick() FLEET_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar session_closed_;
  JobState job_ FLEET_GUARDED_BY(mutex_);
  KvState store_ FLEET_GUARDED_BY(mutex_);
  std::map<SessionId, NodeSession*> sessions_ FLEET_GUARDED_BY(mutex_);
  SessionId last_session_ FLEET_GUARDED_BY(mutex_) = 0;
  // The encoded world of world_generation_; follows each Assignment.
  std::shared_ptr<const std::string> world_ FLEET_GUARDED_BY(mutex_);
  int world_generation_ FLEET_GUARDED_BY(mutex_) = 0;
  std::optional<HostHeartbeats> datagrams_ FLEET_GUARDED_BY(mutex_);
  const std::chrono::milliseconds heartbeat_interval_;
  const uint64_t probe_token_;
  SessionId probe_ FLEET_GUARDED_BY(mutex_) = 0;  // the probe's session
  // When the ticker is due: waking its thread for each message would cost more than the message.
  Clock::time_point due_ FLEET_GUARDED_BY(mutex_) = Clock::time_point::max();
  Clock::time_point next_datagrams_ FLEET_GUARDED_BY(mutex_){};
  bool closing_ FLEET_GUARDED_BY(mutex_) = false;
  Ticker ticker_;  // last: it uses the rest
};

// The gRPC service. Thread-safe. Does not own the host.
std::unique_ptr<grpc::Service> make_rendezvous_service(JobHost* host);

}  // namespace fleet
