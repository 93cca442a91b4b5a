// Transport of a node's messages to the rendezvous host: gRPC, or direct calls within the host's
// own process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "transport/control_messages.h"
#include "transport/security.h"

namespace fleet {

class JobHost;

// How a stream ended.
struct StreamEnd {
  enum class Kind {
    kClosed,   // by the host, after its last message
    kBroken,   // not connected, or connected no longer
    kForeign,  // not a rendezvous server
    kRefused,  // the host does not accept this node's credentials or address
  };
  Kind kind = Kind::kClosed;
  std::string reason;  // one line for the user
};

// The node's end of one stream. Thread-safe. Valid until the owner's on_stream_end().
class NodeStream {
 public:
  virtual void send(wire::NodeMessage message) = 0;
  virtual void end() = 0;     // after pending messages
  virtual void cancel() = 0;  // at once
  // The host in gRPC's notation, once a message has arrived; "" within its process.
  virtual std::string peer() const = 0;

 protected:
  ~NodeStream() = default;  // streams delete themselves
};

// Receives from streams, one call at a time for each stream, on a thread of the transport. It may
// call the stream from within.
class NodeStreamOwner {
 public:
  virtual ~NodeStreamOwner() = default;
  virtual void on_message(NodeStream* stream, wire::HostMessage message) = 0;
  virtual void on_stream_end(NodeStream* stream, const StreamEnd& end) = 0;  // the last call
};

// Opens a stream, on which `join` is the first message. Does not block and does not call the owner
// before it returns. Thread-safe.
using NodeTransport =
    std::function<NodeStream*(std::shared_ptr<NodeStreamOwner> owner, wire::NodeMessage join)>;

// Over gRPC; connects when the first stream opens. address: "10.0.0.1:6768" or that of a Unix
// socket.
NodeTransport make_grpc_transport(const std::string& address, const Security& security,
                                  std::chrono::milliseconds heartbeat_timeout);
// Within the host's process: no socket, no gRPC. Keeps the host until its last stream has ended.
NodeTransport make_local_transport(std::shared_ptr<JobHost> host);

}  // namespace fleet
