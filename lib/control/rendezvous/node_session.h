// The server's end of one node's stream.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>

#include "rendezvous/service.h"

namespace fleet {

// Calls marked (locked) need the service's lock. Deletes itself when gRPC is done with it. It sends
// bytes, so that a message to thousands of nodes is encoded once and shared.
class NodeSession final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  NodeSession(RendezvousService* service, SessionId id, grpc::CallbackServerContext* context)
      : service_(service), context_(context), id_(id) {}

  SessionId id() const { return id_; }
  void begin() { StartRead(&in_); }
  void send(grpc::ByteBuffer message);  // (locked)
  void end();                           // (locked) after pending messages
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  void proceed();  // (locked)

  RendezvousService* service_;
  grpc::CallbackServerContext* context_;
  SessionId id_;
  grpc::ByteBuffer in_;
  std::deque<grpc::ByteBuffer> out_;
  bool writing_ = false, ending_ = false, finished_ = false;
};

}  // namespace fleet
