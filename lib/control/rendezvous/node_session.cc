#include "rendezvous/node_session.h"

#include "base/log.h"

namespace fleet {
namespace {

// The queue limit of a node that does not read; its session then ends.
constexpr size_t kMaxUnsent = 4096;

}  // namespace

void NodeSession::send(grpc::ByteBuffer message) {
  if (ending_) return;
  if (out_.size() >= kMaxUnsent) {
    out_.resize(writing_ ? 1 : 0);
    ending_ = true;
    return context_->TryCancel();
  }
  out_.push_back(std::move(message));
  proceed();
}

void NodeSession::end() {
  ending_ = true;
  proceed();
}

void NodeSession::proceed() {
  if (writing_ || finished_) return;
  if (!out_.empty()) {
    writing_ = true;
    return StartWrite(&out_.front());
  }
  if (!ending_) return;
  finished_ = true;
  Finish(grpc::Status::OK);
}

void NodeSession::OnWriteDone(bool ok) {
  std::lock_guard lock(service_->mutex_);
  writing_ = false;
  if (ok) {
    out_.pop_front();
  } else {
    out_.clear();  // broken: the pending read reports it too
  }
  proceed();
}

void NodeSession::OnReadDone(bool ok) {
  wire::NodeMessage message;
  if (!ok || !grpc::SerializationTraits<wire::NodeMessage>::Deserialize(&in_, &message).ok()) {
    return service_->on_stream_closed(this);
  }
  try {
    service_->on_message(this, message);
  } catch (const std::exception& error) {  // gRPC would swallow it and stop reading the stream
    spdlog::error("internal error: {}: please report this bug", error.what());
    return service_->on_stream_closed(this);
  }
  StartRead(&in_);
}

void NodeSession::OnDone() { service_->on_session_done(this); }

}  // namespace fleet
