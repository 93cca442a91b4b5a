// The gRPC service of the rendezvous: decodes, calls JobHost, encodes.
#pragma once

#include <grpcpp/grpcpp.h>

#include "proto/control.grpc.pb.h"
#include "rendezvous/job_host.h"

namespace fleet {

// The generated classes: sessions exchange bytes, the store's calls messages.
using RendezvousMethods =
    wire::Rendezvous::WithRawCallbackMethod_Session<wire::Rendezvous::WithCallbackMethod_Describe<
        wire::Rendezvous::WithCallbackMethod_Set<wire::Rendezvous::WithCallbackMethod_Get<
            wire::Rendezvous::WithCallbackMethod_Add<wire::Rendezvous::Service>>>>>;

// Thread-safe. Does not own the host.
class RendezvousService final : public RendezvousMethods {
 public:
  explicit RendezvousService(JobHost* host) : host_(host) {}

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
  JobHost* const host_;
};

}  // namespace fleet
