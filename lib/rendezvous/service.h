// The gRPC service of the rendezvous: decodes, asks JobState and KvState, encodes. Nothing is
// decided here.
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

// Of the generated classes: sessions deal in bytes, the store's calls in messages.
using RendezvousMethods =
    wire::Rendezvous::WithRawCallbackMethod_Session<wire::Rendezvous::WithCallbackMethod_Describe<
        wire::Rendezvous::WithCallbackMethod_Set<wire::Rendezvous::WithCallbackMethod_Get<
            wire::Rendezvous::WithCallbackMethod_Add<wire::Rendezvous::Service>>>>>;

// Thread-safe.
class RendezvousService final : public RendezvousMethods {
 public:
  // reach: how the host is named to people, "10.0.0.1:6768".
  // from: nullptr, or what a host that was lost has left.
  RendezvousService(JobSpec job, JobTimes times, std::string reach, const Inheritance* from);
  ~RendezvousService() override;

  // Before the first session: nodes beat by datagrams too.
  void beat_by(HostBeats datagrams);
  // Tells everyone who has no verdict that the host ends, and ends every session once it has been
  // told. Waits for that up to `drain`.
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

  // What sessions and waits report. None is called with the lock held.
  void heard(NodeSession* session, const wire::NodeMessage& message);
  void stream_over(NodeSession* session);
  void session_done(NodeSession* session);
  void get_cancelled(WaitingGet* get);

  void send_outgoing();                        // (locked)
  void hear_datagrams(Clock::time_point now);  // (locked)
  std::optional<Error> refuse_caller(const wire::Caller& caller) const;
  Clock::time_point tick();
  // Sends what the states want to say; unlocks, then runs the answers of the store.
  void flush(std::unique_lock<std::mutex> lock);

  std::mutex mutex_;
  std::condition_variable session_gone_;
  JobState job_;
  KvState store_;
  std::map<SessionId, NodeSession*> sessions_;
  SessionId last_session_ = 0;
  grpc::Slice world_;  // encoded, of world_epoch_: what follows each Assignment
  int world_epoch_ = 0;
  std::optional<HostBeats> datagrams_;
  std::chrono::milliseconds beat_;
  Clock::time_point next_datagrams_{};
  bool closing_ = false;
  Ticker ticker_;  // last: it uses the rest
};

}  // namespace fleet
