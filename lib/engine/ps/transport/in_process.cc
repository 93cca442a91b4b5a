// Connections within a process.
#include <utility>

#include "base/mutex.h"
#include "ps/transport/stream_connection.h"

namespace fleet::ps {
namespace {

// Feeds its frames to the other end, within the sender's call while the other end has room.
class InProcessConnection final : public StreamConnection {
 public:
  using StreamConnection::StreamConnection;

  static void connect(const std::shared_ptr<InProcessConnection>& a,
                      const std::shared_ptr<InProcessConnection>& b, const Deliver& deliver) {
    a->other_ = b;
    b->other_ = a;
    a->inbox_.start(a, true, deliver);
    b->inbox_.start(b, true, deliver);
  }
  std::string transport() const override { return "inprocess"; }

 private:
  // An answer to a frame may call this again while it runs.
  void start_sending() override {
    {
      const MutexLock lock(mutex_);
      wanted_ = true;
      if (sending_) return;
      sending_ = true;
    }
    while (is_wanted()) send_some();
  }
  bool is_wanted() {
    const MutexLock lock(mutex_);
    return sending_ = std::exchange(wanted_, false);
  }
  void send_some() {
    const std::shared_ptr<InProcessConnection> other = other_.lock();
    Outgoing::Frame frame;
    while (other && !other->inbox_.full() && outgoing_->next(&frame)) {
      // Set before the answer arrives, which ends this connection.
      if (frame.header.kind == FrameKind::kClose) close_sent_ = true;
      sent_ += static_cast<int64_t>(sizeof frame.header + frame.header.bytes);
      other->feed(std::as_bytes(std::span(&frame.header, 1)));
      for (const Bytes& part : frame.parts) other->feed(part.data);
      frame.parts.clear();
      outgoing_->release(frame.header.bytes);
    }
    if (close_sent_ && close_received_) outgoing_->end();
  }
  void start_receiving() override {
    if (const auto other = other_.lock()) other->start_sending();
  }
  void abandon() override {
    if (const auto other = other_.lock()) other->ended("the other end gave it up");
  }

  std::weak_ptr<InProcessConnection> other_;
  Mutex mutex_;
  bool sending_ FLEET_GUARDED_BY(mutex_) = false;
  bool wanted_ FLEET_GUARDED_BY(mutex_) = false;
  std::atomic<bool> close_sent_{false};
};

}  // namespace

InProcessPair connect_in_process(ConnectionHandler& client, ConnectionHandler& server,
                                 const Deliver& deliver) {
  auto a = std::make_shared<InProcessConnection>("the server", client);
  auto b = std::make_shared<InProcessConnection>("the client", server);
  InProcessConnection::connect(a, b, deliver);
  return {std::move(a), std::move(b)};
}

}  // namespace fleet::ps
