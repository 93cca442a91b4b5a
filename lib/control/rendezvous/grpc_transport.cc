// Streams over gRPC.
#include <grpcpp/grpcpp.h>

#include <mutex>
#include <utility>

#include "proto/control.grpc.pb.h"
#include "rendezvous/node_transport.h"
#include "transport/grpc_setup.h"
#include "transport/queued_writer.h"

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
class GrpcNodeStream final
    : public NodeStream,
      public QueuedWriter<grpc::ClientBidiReactor<wire::NodeMessage, wire::HostMessage>,
                          wire::NodeMessage> {
 public:
  explicit GrpcNodeStream(std::shared_ptr<NodeStreamOwner> owner) : owner_(std::move(owner)) {}

  void begin(wire::Rendezvous::Stub* stub, wire::NodeMessage join) {
    stub->async()->Session(&context_, this);
    AddHold();  // other threads write, until the last read
    StartRead(&in_);
    send(std::move(join));
    StartCall();
  }

  void send(wire::NodeMessage message) override { write(std::move(message)); }
  void end() override { close(); }
  void cancel() override { context_.TryCancel(); }
  std::string peer() const override { return context_.peer(); }

  void OnReadDone(bool ok) override {
    if (ok) {
      owner_->on_message(this, std::move(in_));
      return StartRead(&in_);
    }
    stop_writing();
    RemoveHold();
  }
  void OnDone(const grpc::Status& status) override {
    owner_->on_stream_end(this, end_of(status));
    delete this;
  }

 private:
  void on_last_written() override { StartWritesDone(); }
  void on_overflow() override { context_.TryCancel(); }

  const std::shared_ptr<NodeStreamOwner> owner_;
  grpc::ClientContext context_;
  wire::HostMessage in_;
};

}  // namespace

NodeTransport make_grpc_transport(const std::string& address, const Security& security,
                                  std::chrono::milliseconds heartbeat_timeout) {
  struct Connection {
    std::once_flag once;
    std::unique_ptr<wire::Rendezvous::Stub> stub;
  };
  return [=, connection = std::make_shared<Connection>()](std::shared_ptr<NodeStreamOwner> owner,
                                                          wire::NodeMessage join) {
    std::call_once(connection->once, [&] {
      connection->stub = wire::Rendezvous::NewStub(
          make_channel(address, security, heartbeat_timeout, Liveness::kHeartbeats));
    });
    auto* stream = new GrpcNodeStream(std::move(owner));
    stream->begin(connection->stub.get(), std::move(join));
    return stream;
  };
}

}  // namespace fleet
