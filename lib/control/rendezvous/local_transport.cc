#include "rendezvous/local_transport.h"

#include <deque>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "rendezvous/ticker.h"

namespace fleet {
namespace {

// Joins both ends of a stream. Each end only queues; the ticker's thread delivers, without a lock,
// so that the receiver may answer at once. Deletes itself after the last call.
class LocalStream final : public NodeStream {
 public:
  LocalStream(std::shared_ptr<JobHost> host, std::shared_ptr<NodeStreamOwner> owner)
      : host_(std::move(host)), owner_(std::move(owner)), ticker_([this] { return deliver(); }) {}

  void begin(wire::NodeMessage join) {
    if (host_->open(&session_)) send(std::move(join));
  }

  void send(wire::NodeMessage message) override {
    const MutexLock lock(mutex_);
    if (ended_by_node_) return;
    to_host_.push_back(std::move(message));
    wake();
  }
  void end() override {
    const MutexLock lock(mutex_);
    ended_by_node_ = true;
    wake();
  }
  void cancel() override {
    const MutexLock lock(mutex_);
    ended_by_node_ = cancelled_ = true;
    to_host_.clear();
    to_node_.clear();
    wake();
  }
  std::string peer() const override { return {}; }

 private:
  class Session final : public NodeSession {
   public:
    explicit Session(LocalStream* stream) : stream_(stream) {}
    void send(EncodedMessage message) override { stream_->send_to_node(std::move(message)); }
    void end() override { stream_->end_by_host(); }

   private:
    LocalStream* const stream_;
  };

  void send_to_node(EncodedMessage message) {
    const MutexLock lock(mutex_);
    if (ended_by_host_ || cancelled_) return;
    to_node_.push_back(std::move(message));
    wake();
  }
  void end_by_host() {
    const MutexLock lock(mutex_);
    ended_by_host_ = true;
    wake();
  }
  void wake() { ticker_.due_by(JobHost::Clock::now()); }

  JobHost::Clock::time_point deliver() {
    while (deliver_to_host() || deliver_to_node()) {
    }
    const std::optional<StreamEnd> how = end_of_stream();
    if (!how) return JobHost::Clock::time_point::max();
    owner_->on_stream_end(this, *how);
    host_->on_session_done(&session_);
    delete this;
    return JobHost::Clock::time_point::max();
  }

  // Returns whether there was something to deliver; so does deliver_to_node().
  bool deliver_to_host() {
    std::optional<wire::NodeMessage> message;
    {
      const MutexLock lock(mutex_);
      if (closed_at_host_) return false;
      if (!to_host_.empty()) {
        message = std::move(to_host_.front());
        to_host_.pop_front();
      } else if (!ended_by_node_) {
        return false;
      }
      closed_at_host_ = !message;
    }
    message ? (void)host_->on_message(&session_, std::move(*message))
            : host_->on_stream_closed(&session_);
    return true;
  }

  bool deliver_to_node() {
    std::string bytes;
    {
      const MutexLock lock(mutex_);
      if (to_node_.empty()) return false;
      for (const auto& part : to_node_.front()) bytes += *part;
      to_node_.pop_front();
    }
    wire::HostMessage message;
    message.ParseFromString(bytes);  // our own bytes
    owner_->on_message(this, message);
    return true;
  }

  std::optional<StreamEnd> end_of_stream() {
    const MutexLock lock(mutex_);
    if (!ended_by_host_ || !to_node_.empty() || !to_host_.empty()) return std::nullopt;
    if (cancelled_) return StreamEnd{StreamEnd::Kind::kBroken, "cancelled"};
    return StreamEnd{StreamEnd::Kind::kClosed, "it closed the connection"};
  }

  const std::shared_ptr<JobHost> host_;
  const std::shared_ptr<NodeStreamOwner> owner_;
  Session session_{this};
  Mutex mutex_;
  std::deque<wire::NodeMessage> to_host_ FLEET_GUARDED_BY(mutex_);
  std::deque<EncodedMessage> to_node_ FLEET_GUARDED_BY(mutex_);
  bool ended_by_node_ FLEET_GUARDED_BY(mutex_) = false;
  bool ended_by_host_ FLEET_GUARDED_BY(mutex_) = false;
  bool cancelled_ FLEET_GUARDED_BY(mutex_) = false;
  bool closed_at_host_ FLEET_GUARDED_BY(mutex_) = false;
  Ticker ticker_;  // last: it uses the rest
};

class LocalTransport final : public NodeTransport {
 public:
  explicit LocalTransport(std::shared_ptr<JobHost> host) : host_(std::move(host)) {}

  NodeStream* open(std::shared_ptr<NodeStreamOwner> owner, wire::NodeMessage join) override {
    auto* stream = new LocalStream(host_, std::move(owner));
    stream->begin(std::move(join));
    return stream;
  }

 private:
  const std::shared_ptr<JobHost> host_;
};

}  // namespace

std::unique_ptr<NodeTransport> make_local_transport(std::shared_ptr<JobHost> host) {
  return std::make_unique<LocalTransport>(std::move(host));
}

}  // namespace fleet
