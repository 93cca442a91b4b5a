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
#include "rendezvous/datagram_beats.h"
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
  RendezvousService(JobSpec job, JobTimes times, std::string reach, const Inheritance* from);
  ~RendezvousService() override;

  // Enables datagram heartbeats. Call it before the first session.
  void beat_by(HostBeats datagrams);
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
  void heard(NodeSession* session, const wire::NodeMessage& message);
  void stream_over(NodeSession* session);
  void session_done(NodeSession* session);
  void get_cancelled(WaitingGet* get);

  void send_outgoing();                        // (locked)
  void hear_datagrams(Clock::time_point now);  // (locked)
  std::optional<Error> refuse_caller(const wire::Caller& caller) const;
  Clock::time_point tick();
  // Sends the queued messages; unlocks, then runs the store's answers.
  void flush(std::unique_lock<std::mutex> lock);

  std::mutex mutex_;
  std::condition_variable session_gone_;
  JobState job_;
  KvState store_;
  std::map<SessionId, NodeSession*> sessions_;
  SessionId last_session_ = 0;
  grpc::Slice world_;  // encoded world of world_epoch_; follows each Assignment
  int world_epoch_ = 0;
  std::optional<HostBeats> datagrams_;
  std::chrono::milliseconds beat_;
  Clock::time_point next_datagrams_{};
  bool closing_ = false;
  Ticker ticker_;  // last: it uses the rest
};

}  // namespace fleet
