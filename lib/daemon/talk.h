// One client session with fleetd (proto/fleetd.proto) over gRPC, seen from either end, as events in
// an Asio loop.
#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "proto/fleetd.grpc.pb.h"
#include "rendezvous/security.h"

namespace fleet {

class ConnectionLimiter;

namespace daemon_wire = ::fleet::daemon::v1;
using daemon_wire::Ask;
using daemon_wire::Tell;

// Events of a session, on the loop's thread and in order.
template <typename In>
struct TalkEvents {
  std::function<void(const In&)> message;
  std::function<void()> room = [] {};               // the write queue is empty
  std::function<void(const grpc::Status&)> closed;  // the last event
};

// The part common to both ends: reads, and a write queue. Thread safe. Lives until gRPC has
// finished with it and all references are gone.
template <typename Reactor, typename In, typename Out>
class TalkStream : public Reactor,
                   public std::enable_shared_from_this<TalkStream<Reactor, In, Out>> {
 public:
  explicit TalkStream(boost::asio::io_context& loop) : loop_(loop) {}

  // Drops the message if the session is over.
  void send(Out message) {
    std::lock_guard lock(mutex_);
    if (over_ || ending_) return;
    waiting_ += message.ByteSizeLong();
    out_.push_back(std::move(message));
    proceed();
  }
  // Sends nothing more; queued messages still go out.
  void end() {
    std::lock_guard lock(mutex_);
    ending_ = true;
    proceed();
  }
  // Pauses reading. Call it on the loop's thread only.
  void hold(bool held) {
    held_ = held;
    read_on();
  }
  size_t waiting() const {  // bytes in the write queue
    std::lock_guard lock(mutex_);
    return waiting_;
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (ok) {
      waiting_ -= out_.front().ByteSizeLong();
      out_.pop_front();
    } else {
      out_.clear();  // broken: the pending read reports it too
      waiting_ = 0;
    }
    if (out_.empty()) {
      post([](TalkStream& stream) { stream.events_.room(); });
    }
    proceed();
  }

 protected:
  virtual void finish() = 0;          // (locked) once, after the last write
  virtual bool may_read() const = 0;  // (locked)

  void hear(TalkEvents<In> events) {
    events_ = std::move(events);
    self_ = this->shared_from_this();
    this->StartRead(&in_);
  }
  // Delivers a message; the next one is read when the handler has returned.
  void pass_on() {
    post([](TalkStream& stream) {
      const In message = std::move(stream.in_);
      stream.in_.Clear();
      stream.events_.message(message);
      stream.unread_ = true;
      stream.read_on();
    });
  }
  void reading_over() {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  void done(const grpc::Status& status) {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    post([status](TalkStream& stream) {
      stream.events_.closed(status);
      stream.events_ = {};  // release what the callbacks hold
    });
    self_.reset();
  }
  void proceed() {  // (locked)
    if (writing_ || finished_) return;
    if (!out_.empty()) {
      writing_ = true;
      return this->StartWrite(&out_.front());
    }
    if (!ending_) return;
    finished_ = true;
    finish();
  }

  mutable std::mutex mutex_;
  bool over_ = false, finished_ = false;

 private:
  void read_on() {
    if (held_ || !std::exchange(unread_, false)) return;
    std::lock_guard lock(mutex_);
    if (may_read()) this->StartRead(&in_);
  }
  template <typename Event>
  void post(Event event) {
    boost::asio::post(loop_, [self = this->shared_from_this(), event = std::move(event)] {
      if (self->events_.message) event(*self);
    });
  }

  boost::asio::io_context& loop_;
  TalkEvents<In> events_;  // loop's thread only, once started
  std::shared_ptr<TalkStream> self_;
  In in_;
  std::deque<Out> out_;
  size_t waiting_ = 0;
  bool writing_ = false, ending_ = false;
  bool held_ = false, unread_ = false;  // loop's thread only: reading is paused
};

// fleetd's end.
class ServerTalk final : public TalkStream<grpc::ServerBidiReactor<Ask, Tell>, Ask, Tell> {
 public:
  ServerTalk(boost::asio::io_context& loop, grpc::CallbackServerContext* context)
      : TalkStream(loop), context_(context) {}
  // Ends the session without waiting for a client that may be gone.
  void abandon();
  void begin(TalkEvents<Ask> events) { hear(std::move(events)); }
  void OnReadDone(bool ok) override;
  void OnDone() override { done(grpc::Status::OK); }

 private:
  void finish() override { Finish(grpc::Status::OK); }
  bool may_read() const override { return !finished_; }

  grpc::CallbackServerContext* context_;
};

// A client's end.
class ClientTalk final : public TalkStream<grpc::ClientBidiReactor<Ask, Tell>, Tell, Ask> {
 public:
  // Uses this channel. Errors arrive in the status of `closed`.
  static std::shared_ptr<ClientTalk> start(boost::asio::io_context& loop,
                                           const std::shared_ptr<grpc::Channel>& channel,
                                           TalkEvents<Tell> events);
  // Connects to "host:port".
  static std::shared_ptr<ClientTalk> start(boost::asio::io_context& loop,
                                           const std::string& address, const Security& security,
                                           TalkEvents<Tell> events);
  using TalkStream::TalkStream;
  void cancel() { context_.TryCancel(); }
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override { done(status); }

 private:
  void finish() override { StartWritesDone(); }
  bool may_read() const override { return true; }

  std::unique_ptr<daemon_wire::Fleetd::Stub> stub_;
  grpc::ClientContext context_;
};

// Serves client sessions. `accept` gets each new session on the loop's thread and must call its
// begin().
class TalkServer {
 public:
  // Throws kUsage if it cannot listen on the address or port.
  TalkServer(boost::asio::io_context& loop, const std::string& host, int port,
             const Security& security, std::function<void(std::shared_ptr<ServerTalk>)> accept);
  // Serves one existing connection: a socket whose other end may use make_pipe_channel().
  TalkServer(boost::asio::io_context& loop, UniqueFd connection,
             std::function<void(std::shared_ptr<ServerTalk>)> accept);
  ~TalkServer();
  int port() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // renewed automatically while it serves
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionLimiter> connections_;  // last: passes connections to the server
};

// A client's channel over an existing connection.
std::shared_ptr<grpc::Channel> make_pipe_channel(UniqueFd connection);

// Why a session with `address` ended, for people. May take a second.
Error error_of(const grpc::Status& status, const std::string& address, const Security& security);

}  // namespace fleet
