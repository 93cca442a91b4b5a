// Connections between trainers and servers: gRPC, shared memory on one host, or queues
// in one process (for tests). All have the same meaning; a contract test runs on each.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "ps/message.h"
#include "transport/security.h"

namespace fleet::ps {

// One end of an ordered stream of messages in both directions. Any thread.
class Connection {
 public:
  virtual ~Connection() = default;
  // Enqueues a message of any size (large ones are sent in parts) and returns. Does nothing after
  // the end of the connection, which closed() reports.
  virtual void send(Message message) = 0;
  // Waits until at most this many bytes of payload are left to send. Returns false if the
  // time ended first, or the connection did.
  virtual bool wait_until_unsent(size_t bytes, std::chrono::milliseconds timeout) = 0;
  // The other end receives all earlier messages, then closed() with a null error. This end still
  // receives what the other one has sent until then; its own closed() says that the other end has
  // received everything.
  virtual void close() = 0;
  // close(), then waits for closed() to return, after which the handler is no longer called and
  // the process may exit. If the time ends first, breaks the connection, waits for closed() with
  // kTimeout, and returns false. Not from within a handler.
  virtual bool disconnect(std::chrono::milliseconds timeout) = 0;
  virtual std::string peer() const = 0;       // "10.0.0.1:6070", for messages
  virtual std::string transport() const = 0;  // "grpc", "shm" or "inprocess"
  virtual int64_t sent() const = 0;           // bytes, with framing
  virtual int64_t received() const = 0;
};

// Called by threads of the transport, one call at a time for a connection. They must not wait for
// messages of the same connection, and must not throw. closed() is called once for every opened
// connection, whichever end closes it; the connection and the handler must live until it has
// returned (the connection keeps itself alive).
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  virtual void opened(const std::shared_ptr<Connection>& /*connection*/) {}
  virtual void received(const std::shared_ptr<Connection>& connection, Message message) = 0;
  // why: null if the other end called close(); kPeerLost if it is gone.
  virtual void closed(const std::shared_ptr<Connection>& connection, const Error* why) = 0;
};

struct TransportOptions {
  Security security = {};
  bool shared_memory = true;  // use it between processes of one host
  // A peer whose kernel does not answer for this long is lost. A stopped or slow process is not.
  std::chrono::milliseconds peer_timeout{15'000};
};

// Listens until it is destroyed, which closes its connections: it waits up to 5 s for the other
// ends to receive what was sent, and returns once closed() has returned for all of them.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual std::string address() const = 0;  // "10.0.0.1:6070" as a connect() takes it
};

// address: "host:port"; port 0: a free one. Both gRPC and, if the options allow it, shared memory
// for processes of the same user on the same host. kUsage or kIo if the port cannot be used.
std::unique_ptr<Listener> listen(const std::string& address, ConnectionHandler& handler,
                                 const TransportOptions& options);
// Tries until the server answers or the time ends (kTimeout naming it). The handler's opened() has
// returned before.
std::shared_ptr<Connection> connect(const std::string& address, ConnectionHandler& handler,
                                    const TransportOptions& options,
                                    std::chrono::milliseconds timeout);

// Both ends in one process, connected; both handlers' opened() have returned. `deliver`, if set,
// runs each delivery (tests inject orders); it must keep the order of a connection. Without it each
// end has a thread.
struct InProcessPair {
  std::shared_ptr<Connection> client, server;
};
using Deliver = std::function<void(std::function<void()>)>;
InProcessPair connect_in_process(ConnectionHandler& client, ConnectionHandler& server,
                                 const Deliver& deliver = nullptr);

}  // namespace fleet::ps
