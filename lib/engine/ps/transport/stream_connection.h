// The common part of all transports' connections: the queues to and from them, and their end.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "ps/connection.h"
#include "ps/transport/frame.h"
#include "ps/transport/inbox.h"
#include "ps/transport/outgoing.h"

namespace fleet::ps {

class StreamConnection : public Connection, public std::enable_shared_from_this<StreamConnection> {
 public:
  StreamConnection(std::string peer, ConnectionHandler& handler);

  void send(Message message) final;
  bool wait_until_unsent(size_t bytes, std::chrono::milliseconds timeout) final;
  void close() final;
  bool disconnect(std::chrono::milliseconds timeout) final;
  std::string peer() const final { return peer_; }
  int64_t sent() const final { return sent_; }
  int64_t received() const final { return received_; }

  // Ends the connection at once: closed() gets `why`, unsent messages are dropped.
  virtual void break_off(const Error& why);
  bool wait_until_finished(std::chrono::steady_clock::time_point deadline) const {
    return inbox_.wait_until_finished(deadline);
  }

 protected:
  // There may be a frame to send. Called by any thread.
  virtual void start_sending() = 0;
  // Ends the transport. Called by any thread, perhaps more than once.
  virtual void abandon() = 0;
  // The inbox has room again. Called by the thread that delivers.
  virtual void start_receiving() {}

  // The transport has ended. Without a kClose of the other end, it is lost, because of `reason`.
  void ended(const std::string& reason);
  // Received bytes of frames. False if they are not frames: the connection has been broken off.
  bool feed(std::span<const std::byte> bytes);

  const std::shared_ptr<Outgoing> outgoing_ = std::make_shared<Outgoing>();
  Inbox inbox_;
  std::atomic<int64_t> sent_{0};
  std::atomic<bool> close_received_{false};
  bool expects_open_ = false;  // until kOpen has arrived; only feed() changes it

 private:
  virtual void on_opened() {}  // kOpen has arrived
  void on_message(Message message);
  void on_control(FrameKind kind);

  const std::string peer_;
  std::atomic<int64_t> received_{0};
  Assembler assembler_;
};

}  // namespace fleet::ps
