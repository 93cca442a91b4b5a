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

void GrpcNodeSession::send(EncodedMessage message) {
  const MutexLock lock(mutex_);
  if (ending_) return;
  if (out_.size() >= kMaxUnsent) {
    out_.resize(writing_ ? 1 : 0);
    ending_ = true;
    return context_->TryCancel();
  }
  std::vector<grpc::Slice> slices;
  for (const Part& part : message) slices.push_back(slice_of(part));
  out_.emplace_back(slices.data(), slices.size());
  proceed();
}

void GrpcNodeSession::end() {
  const MutexLock lock(mutex_);
  ending_ = true;
  proceed();
}

void GrpcNodeSession::proceed() {
  if (writing_ || finished_) return;
  if (!out_.empty()) {
    writing_ = true;
    return StartWrite(&out_.front());
  }
  if (!ending_) return;
  finished_ = true;
  Finish(grpc::Status::OK);
}

void GrpcNodeSession::OnWriteDone(bool ok) {
  const MutexLock lock(mutex_);
  writing_ = false;
  if (ok) {
    out_.pop_front();
  } else {
    out_.clear();  // broken: the pending read reports it too
  }
  proceed();
}

void GrpcNodeSession::OnReadDone(bool ok) {
  wire::NodeMessage message;
  if (!ok || !grpc::SerializationTraits<wire::NodeMessage>::Deserialize(&in_, &message).ok()) {
    return host_->on_stream_closed(this);
  }
  if (host_->on_message(this, message)) StartRead(&in_);
}

void GrpcNodeSession::OnDone() {
  host_->on_session_done(this);
  delete this;
}

}  // namespace fleet
