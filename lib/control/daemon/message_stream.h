// One client session with fleetd (service Fleetd of proto/control.proto) over gRPC, seen from
// either end, as events in a loop.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "proto/control.grpc.pb.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/memory_guard.h"
#include "transport/queued_writer.h"
#include "transport/security.h"

namespace fleet {

class ConnectionLimiter;

// Events of a session, on the loop's thread and in order.
template <typename In>
struct StreamCallbacks {
  std::function<void(const In&)> on_message;
  std::function<void()> on_drained = [] {};            // the write queue is empty
  std::function<void(const grpc::Status&)> on_closed;  // the last event
};

// The part common to both ends. Thread safe. Lives until gRPC has finished with it and all
// references are gone.
template <typename Reactor, typename In, typename Out>
class MessageStream : public QueuedWriter<Reactor, Out>,
                      public std::enable_shared_from_this<MessageStream<Reactor, In, Out>> {
 public:
  explicit MessageStream(EventLoop& loop) : loop_(loop.gate()) {}

  // Drops the message if the session is over. Cancels it if the other end does not read for long.
  void send(Out message) { this->write(std::move(message)); }
  // Pauses reading. Call it on the loop's thread only.
  void pause_reading(bool paused) {
    reading_paused_ = paused;
    read_next();
  }

 protected:
  using QueuedWriter<Reactor, Out>::mutex_;
  virtual bool may_read() const FLEET_REQUIRES(mutex_) = 0;

  void start_reading(StreamCallbacks<In> callbacks) {
    callbacks_ = std::move(callbacks);
    keep_alive_ = this->shared_from_this();
    this->StartRead(&in_);
  }
  // Delivers a message; the next one is read when the handler has returned.
  void deliver() {
    post([](MessageStream& self) {
      const In message = std::move(self.in_);
      self.in_.Clear();
      self.callbacks_.on_message(message);
      self.read_pending_ = true;
      self.read_next();
    });
  }
  void done(const grpc::Status& status) {
    this->stop_writing();
    post([status](MessageStream& self) {
      self.callbacks_.on_closed(status);
      self.callbacks_ = {};  // release what the callbacks hold
    });
    keep_alive_.reset();
  }

 private:
  void on_drained() override {
    post([](MessageStream& self) { self.callbacks_.on_drained(); });
  }
  void read_next() {
    if (reading_paused_ || !std::exchange(read_pending_, false)) return;
    const MutexLock lock(mutex_);
    if (may_read()) this->StartRead(&in_);
  }
  template <typename Callback>
  void post(Callback event) {
    loop_->post([self = this->shared_from_this(), event = std::move(event)] {
      if (self->callbacks_.on_message) event(*self);
    });
  }

  const std::shared_ptr<LoopGate> loop_;  // may end before gRPC does
  StreamCallbacks<In> callbacks_;         // loop's thread only, once started
  std::shared_ptr<MessageStream> keep_alive_;
  In in_;
  bool reading_paused_ = false, read_pending_ = false;  // loop's thread only: reading is paused
};

// fleetd's end.
class ServerStream final
    : public MessageStream<grpc::ServerBidiReactor<wire::ClientMessage, wire::FleetdMessage>,
                           wire::ClientMessage, wire::FleetdMessage> {
 public:
  ServerStream(EventLoop& loop, grpc::CallbackServerContext* context)
      : MessageStream(loop), context_(context) {}
  // Ends the session without waiting for a client that may be gone.
  void cancel();
  void begin(StreamCallbacks<wire::ClientMessage> callbacks) {
    start_reading(std::move(callbacks));
  }
  void OnReadDone(bool ok) override;
  void OnDone() override { done(grpc::Status::OK); }

 private:
  void on_last_written() override { Finish(grpc::Status::OK); }
  void on_overflow() override { context_->TryCancel(); }
  bool may_read() const FLEET_REQUIRES(mutex_) override { return !last_written_; }

  grpc::CallbackServerContext* context_;
};

// A client's end.
class ClientStream final
    : public MessageStream<grpc::ClientBidiReactor<wire::ClientMessage, wire::FleetdMessage>,
                           wire::FleetdMessage, wire::ClientMessage> {
 public:
  // Uses this channel, and sends `first` with this version. Errors arrive in the status of
  // on_closed.
  static std::shared_ptr<ClientStream> start(EventLoop& loop,
                                             const std::shared_ptr<grpc::Channel>& channel,
                                             wire::ClientMessage first,
                                             StreamCallbacks<wire::FleetdMessage> callbacks);
  // Connects to "host:port".
  static std::shared_ptr<ClientStream> start(EventLoop& loop, const std::string& address,
                                             const Security& security, wire::ClientMessage first,
                                             StreamCallbacks<wire::FleetdMessage> callbacks);
  using MessageStream::MessageStream;
  void cancel() { context_.TryCancel(); }
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override { done(status); }

 private:
  void on_last_written() override { StartWritesDone(); }
  void on_overflow() override { context_.TryCancel(); }
  bool may_read() const FLEET_REQUIRES(mutex_) override { return true; }

  std::unique_ptr<wire::Fleetd::Stub> stub_;
  grpc::ClientContext context_;
};

// Serves client sessions. `accept` gets each new session on the loop's thread and must call
// begin() on it.
class StreamServer {
 public:
  // Throws kUsage if it cannot listen on the address or port.
  StreamServer(EventLoop& loop, const std::string& host, int port, const Security& security,
               std::function<void(std::shared_ptr<ServerStream>)> accept);
  // Serves one existing connection: a socket whose other end may use make_channel_from_fd().
  StreamServer(EventLoop& loop, UniqueFd connection,
               std::function<void(std::shared_ptr<ServerStream>)> accept);
  ~StreamServer();
  int port() const;

 private:
  class Service;
  void start(grpc::ServerBuilder* builder);

  std::unique_ptr<Service> service_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // renewed automatically while it serves
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionLimiter> connections_;  // after it: passes connections to the server
  std::unique_ptr<MemoryGuard> guard_;              // without TLS; last: ends both
};

// A client's channel over an existing connection.
std::shared_ptr<grpc::Channel> make_channel_from_fd(UniqueFd connection);

// Why a session with `address` ended, for people. May take a second.
Error error_of(const grpc::Status& status, const std::string& address, const Security& security);

}  // namespace fleet
