// One conversation with fleetd (proto/fleetd.proto) over gRPC, seen from either end, as events in
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

// What comes out of a conversation, in the loop's thread and in order.
template <typename In>
struct TalkEvents {
  std::function<void(const In&)> message;
  std::function<void()> room = [] {};               // all that was sent is on its way
  std::function<void(const grpc::Status&)> closed;  // the last event
};

// The part that both ends share: reads, and a queue of what is to be written. Any thread may call.
// It lives until gRPC is done with it, and as long as somebody holds it.
template <typename Reactor, typename In, typename Out>
class TalkStream : public Reactor,
                   public std::enable_shared_from_this<TalkStream<Reactor, In, Out>> {
 public:
  explicit TalkStream(boost::asio::io_context& loop) : loop_(loop) {}

  // Dropped where the conversation is over.
  void send(Out message) {
    std::lock_guard lock(mutex_);
    if (over_ || ending_) return;
    waiting_ += message.ByteSizeLong();
    out_.push_back(std::move(message));
    proceed();
  }
  // Says nothing more: what was sent still goes out.
  void end() {
    std::lock_guard lock(mutex_);
    ending_ = true;
    proceed();
  }
  // Reads nothing for a while; the loop's thread only.
  void hold(bool held) {
    held_ = held;
    read_on();
  }
  size_t waiting() const {  // bytes
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
      out_.clear();  // broken: the pending read says so too
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
  // A message was read: passes it on. The next one is read when that has been dealt with.
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
      stream.events_ = {};  // whatever they hold
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
  TalkEvents<In> events_;  // the loop's thread only, once begun
  std::shared_ptr<TalkStream> self_;
  In in_;
  std::deque<Out> out_;
  size_t waiting_ = 0;
  bool writing_ = false, ending_ = false;
  bool held_ = false, unread_ = false;  // the loop's thread only: reading waits
};

// fleetd's end.
class ServerTalk final : public TalkStream<grpc::ServerBidiReactor<Ask, Tell>, Ask, Tell> {
 public:
  ServerTalk(boost::asio::io_context& loop, grpc::CallbackServerContext* context)
      : TalkStream(loop), context_(context) {}
  // Ends it without waiting for a client that may be gone.
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
  // Over this connection. What goes wrong is in the status of `closed`.
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

// Serves conversations. `accept` gets each new one in the loop's thread, and calls its begin().
class TalkServer {
 public:
  // kUsage where the address or port cannot be listened on.
  TalkServer(boost::asio::io_context& loop, const std::string& host, int port,
             const Security& security, std::function<void(std::shared_ptr<ServerTalk>)> accept);
  // Over one connection that is there: a socket, whose other end make_pipe_channel() may have.
  TalkServer(boost::asio::io_context& loop, UniqueFd connection,
             std::function<void(std::shared_ptr<ServerTalk>)> accept);
  ~TalkServer();
  int port() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // renew themselves while it serves
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionLimiter> connections_;  // last: it hands connections to the server
};

// A client's end of a connection that is there.
std::shared_ptr<grpc::Channel> make_pipe_channel(UniqueFd connection);

// Why a conversation with `address` ended, for people. May take a second.
Error error_of(const grpc::Status& status, const std::string& address, const Security& security);

}  // namespace fleet
