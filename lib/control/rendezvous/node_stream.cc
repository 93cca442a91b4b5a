#include "rendezvous/client_impl.h"

namespace fleet {

void NodeStream::begin(wire::Rendezvous::Stub* stub, wire::NodeMessage join) {
  stub->async()->Session(&context_, this);
  AddHold();  // other threads write, until the last read
  StartRead(&in_);
  send(std::move(join));
  StartCall();
}

void NodeStream::send(wire::NodeMessage message) {
  if (ending_ || over_) return;
  out_.push_back(std::move(message));
  proceed();
}

void NodeStream::end() {
  ending_ = true;
  proceed();
}

void NodeStream::proceed() {
  if (writing_ || over_ || closed_) return;
  if (!out_.empty()) {
    writing_ = true;
    StartWrite(&out_.front());
  } else if (ending_) {
    closed_ = true;
    StartWritesDone();
  }
}

void NodeStream::OnWriteDone(bool ok) {
  std::lock_guard lock(client_->mutex_);
  writing_ = false;
  if (ok) {
    out_.pop_front();
  } else {
    out_.clear();  // broken: the pending read reports it too
  }
  proceed();
}

void NodeStream::OnReadDone(bool ok) {
  if (ok) {
    client_->on_message(this, in_);
    return StartRead(&in_);
  }
  {
    std::lock_guard lock(client_->mutex_);
    over_ = true;
  }
  RemoveHold();
}

void NodeStream::OnDone(const grpc::Status& status) {
  client_->stream_done(this, status);
  delete this;
}

}  // namespace fleet
