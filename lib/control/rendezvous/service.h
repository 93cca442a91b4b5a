// The gRPC service of the rendezvous: decodes, calls JobState and KvState, encodes. It makes no
// decisions.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/datagram_heartbeats.h"
#include "rendezvous/job_state.h"
#include "rendezvous/kv_state.h"
#include "rendezvous/ticker.h"
#include "rendezvous/wire.h"

namespace fleet {

class NodeSession;
class WaitingGet;

// The generated classes: sessions exchange bytes, the store's calls messages.
using RendezvousMethods =
    wire::Rendezvous::WithRawCallbackMethod_Session<wire::Rendezvous::WithCallbackMethod_Describe<
        wire::Rendezvous::WithCallbackMethod_Set<wire::Rendezvous::WithCallbackMethod_Get<
            wire::Rendezvous::WithCallbackMethod_Add<wire::Rendezvous::Service>>>>>;

// Thread-safe.
class RendezvousService final : public RendezvousMethods {
 public:
  // reach: the host's address in messages to users, "10.0.0.1:6768". from: state of a host that was
  // lost, or nullptr.
  RendezvousService(JobSpec job, JobTimes times, std::string display_address,
                    const FailoverState* from);
  ~RendezvousService() override;

  // Enables datagram heartbeats. Call it before the first session.
  void use_datagram_heartbeats(HostHeartbeats datagrams);
  // Tells all nodes without a verdict that the host ends, and ends every session after its last
  // message. Waits for that up to `drain`.
  void shut_down(std::chrono::milliseconds drain);

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const wire::DescribeRequest* request,
                                     wire::DescribeReply* reply) override;
  grpc::ServerUnaryReactor* Set(grpc::CallbackServerContext* context,
                                const wire::SetRequest* request, wire::StoreReply* reply) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const wire::GetRequest* request, wire::StoreReply* reply) override;
  grpc::ServerUnaryReactor* Add(grpc::CallbackServerContext* context,
                                const wire::AddRequest* request, wire::StoreReply* reply) override;

 private:
  friend class NodeSession;
  friend class WaitingGet;
  using Clock = std::chrono::steady_clock;

  // Reports from sessions and waits. Call them without the lock.
  void on_message(NodeSession* session, const wire::NodeMessage& message);
  void on_stream_closed(NodeSession* session);
  void on_session_done(NodeSession* session);
  void on_get_cancelled(WaitingGet* get);

  void send_outgoing();                           // (locked)
  void receive_datagrams(Clock::time_point now);  // (locked)
  std::optional<Error> check_caller(const wire::Caller& caller) const;
  Clock::time_point tick();
  // Sends the queued messages; unlocks, then runs the store's answers.
  void flush(std::unique_lock<std::mutex> lock);

  std::mutex mutex_;
  std::condition_variable session_closed_;
  JobState job_;
  KvState store_;
  std::map<SessionId, NodeSession*> sessions_;
  SessionId last_session_ = 0;
  grpc::Slice world_;  // encoded world of world_generation_; follows each Assignment
  int world_generation_ = 0;
  std::optional<HostHeartbeats> datagrams_;
  std::chrono::milliseconds heartbeat_interval_;
  Clock::time_point next_datagrams_{};
  bool closing_ = false;
  Ticker ticker_;  // last: it uses the rest
};

}  // namespace fleet
