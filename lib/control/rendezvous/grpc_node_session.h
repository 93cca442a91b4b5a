// A node's session over gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>

#include "base/mutex.h"
#include "rendezvous/job_host.h"
#include "rendezvous/node_session.h"

namespace fleet {

// Deletes itself when gRPC is done with it.
class GrpcNodeSession final : public NodeSession,
                              public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  GrpcNodeSession(JobHost* host, grpc::CallbackServerContext* context)
      : host_(host), context_(context) {}

  void begin() { StartRead(&in_); }
  void send(EncodedMessage message) override;
  void end() override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  void proceed() FLEET_REQUIRES(mutex_);

  JobHost* const host_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer in_;
  Mutex mutex_;
  std::deque<grpc::ByteBuffer> out_ FLEET_GUARDED_BY(mutex_);
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  bool ending_ FLEET_GUARDED_BY(mutex_) = false;
  bool finished_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet
