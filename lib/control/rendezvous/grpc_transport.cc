#include "rendezvous/grpc_transport.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <utility>

#include "base/mutex.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/grpc_setup.h"

namespace fleet {
namespace {

StreamEnd end_of(const grpc::Status& status) {
  using Kind = StreamEnd::Kind;
  if (status.ok()) return {Kind::kClosed, "it closed the connection"};
  const grpc::StatusCode code = status.error_code();
  const Kind kind = code == grpc::StatusCode::UNIMPLEMENTED     ? Kind::kForeign
                    : code == grpc::StatusCode::UNAUTHENTICATED ? Kind::kRefused
                                                                : Kind::kBroken;
  return {kind, reason_of(status)};
}

// Deletes itself when gRPC is done with it.
class GrpcNodeStream final : public NodeStream,
                             public grpc::ClientBidiReactor<wire::NodeMessage, wire::HostMessage> {
 public:
  explicit GrpcNodeStream(std::shared_ptr<NodeStreamOwner> owner) : owner_(std::move(owner)) {}

  void begin(wire::Rendezvous::Stub* stub, wire::NodeMessage join) {
    stub->async()->Session(&context_, this);
    AddHold();  // other threads write, until the last read
    StartRead(&in_);
    send(std::move(join));
    StartCall();
  }

  void send(wire::NodeMessage message) override {
    const MutexLock lock(mutex_);
    if (ending_ || over_) return;
    out_.push_back(std::move(message));
    proceed();
  }
  void end() override {
    const MutexLock lock(mutex_);
    ending_ = true;
    proceed();
  }
  void cancel() override { context_.TryCancel(); }
  std::string peer() const override { return context_.peer(); }

  void OnReadDone(bool ok) override {
    if (ok) {
      owner_->on_message(this, in_);
      return StartRead(&in_);
    }
    {
      const MutexLock lock(mutex_);
      over_ = true;
    }
    RemoveHold();
  }
  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (ok) {
      out_.pop_front();
    } else {
      out_.clear();  // broken: the pending read reports it too
    }
    proceed();
  }
  void OnDone(const grpc::Status& status) override {
    owner_->on_stream_end(this, end_of(status));
    delete this;
  }

 private:
  void proceed() FLEET_REQUIRES(mutex_) {
    if (writing_ || over_ || closed_) return;
    if (!out_.empty()) {
      writing_ = true;
      StartWrite(&out_.front());
    } else if (ending_) {
      closed_ = true;
      StartWritesDone();
    }
  }

  const std::shared_ptr<NodeStreamOwner> owner_;
  grpc::ClientContext context_;
  wire::HostMessage in_;
  Mutex mutex_;
  std::deque<wire::NodeMessage> out_ FLEET_GUARDED_BY(mutex_);
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  bool ending_ FLEET_GUARDED_BY(mutex_) = false;
  bool closed_ FLEET_GUARDED_BY(mutex_) = false;
  bool over_ FLEET_GUARDED_BY(mutex_) = false;
};

class GrpcTransport final : public NodeTransport {
 public:
  GrpcTransport(std::string address, Security security, std::chrono::milliseconds heartbeat_timeout)
      : address_(std::move(address)),
        security_(std::move(security)),
        heartbeat_timeout_(heartbeat_timeout) {}

  NodeStream* open(std::shared_ptr<NodeStreamOwner> owner, wire::NodeMessage join) override {
    const MutexLock lock(mutex_);
    if (!stub_) {
      stub_ = wire::Rendezvous::NewStub(
          make_channel(address_, security_, heartbeat_timeout_, Liveness::kHeartbeats));
    }
    auto* stream = new GrpcNodeStream(std::move(owner));
    stream->begin(stub_.get(), std::move(join));
    return stream;
  }

 private:
  const std::string address_;
  const Security security_;
  const std::chrono::milliseconds heartbeat_timeout_;
  Mutex mutex_;
  std::unique_ptr<wire::Rendezvous::Stub> stub_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<NodeTransport> make_grpc_transport(std::string address, Security security,
                                                   std::chrono::milliseconds heartbeat_timeout) {
  return std::make_unique<GrpcTransport>(std::move(address), std::move(security),
                                         heartbeat_timeout);
}

}  // namespace fleet
