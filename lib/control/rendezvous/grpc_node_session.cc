#include "rendezvous/grpc_node_session.h"

#include <utility>

#include "proto/control.grpc.pb.h"  // how gRPC parses our messages

namespace fleet {
namespace {

// The queue limit of a node that does not read; its session then ends.
constexpr size_t kMaxUnsent = 4096;

using Part = std::shared_ptr<const std::string>;

// Shares the bytes.
grpc::Slice slice_of(const Part& part) {
  const auto release = [](void* kept) { delete static_cast<Part*>(kept); };
  return {const_cast<char*>(part->data()), part->size(), release, new Part(part)};
}

}  // namespace

GrpcNodeSession::GrpcNodeSession(JobHost* host, grpc::CallbackServerContext* context)
    : QueuedWriter(kMaxUnsent), host_(host), context_(context) {}

void GrpcNodeSession::send(EncodedMessage message) {
  std::vector<grpc::Slice> slices;
  for (const Part& part : message) slices.push_back(slice_of(part));
  if (!write(grpc::ByteBuffer(slices.data(), slices.size()))) context_->TryCancel();
}

void GrpcNodeSession::OnReadDone(bool ok) {
  wire::NodeMessage message;
  if (!ok || !grpc::SerializationTraits<wire::NodeMessage>::Deserialize(&in_, &message).ok()) {
    return host_->on_stream_closed(this);
  }
  if (host_->on_message(this, std::move(message))) StartRead(&in_);
}

void GrpcNodeSession::OnDone() {
  host_->on_session_done(this);
  delete this;
}

}  // namespace fleet
