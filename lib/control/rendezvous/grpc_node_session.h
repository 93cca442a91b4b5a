// A node's session over gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include "rendezvous/job_host.h"
#include "rendezvous/node_session.h"
#include "rendezvous/queued_writer.h"

namespace fleet {

// Deletes itself when gRPC is done with it.
class GrpcNodeSession final
    : public NodeSession,
      public QueuedWriter<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          grpc::ByteBuffer> {
 public:
  GrpcNodeSession(JobHost* host, grpc::CallbackServerContext* context);

  void begin() { StartRead(&in_); }
  void send(EncodedMessage message) override;
  void end() override { close(); }
  void OnReadDone(bool ok) override;
  void OnDone() override;

 private:
  void on_last_written() override { Finish(grpc::Status::OK); }

  JobHost* const host_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer in_;
};

}  // namespace fleet
