// Streams between a job's host and the node in the same process.
#include <functional>
#include <utility>

#include "base/mutex.h"
#include "rendezvous/job_host.h"
#include "rendezvous/node_transport.h"
#include "transport/bounded_queue.h"
#include "transport/ticker.h"

namespace fleet {
namespace {

// Joins both ends of a stream. Each end only queues calls of the other; the ticker's thread makes
// them, without a lock, so that the receiver may answer at once. Cancels itself if too many wait.
// Deletes itself after the last call.
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
    const size_t bytes = message.ByteSizeLong();
    queue([this, message = std::move(message)] { host_->on_message(&session_, message); }, bytes);
  }
  void end() override {
    const MutexLock lock(mutex_);
    if (!std::exchange(ended_by_node_, true)) queue_closed();
  }
  void cancel() override {
    const MutexLock lock(mutex_);
    abandon();
  }
  std::string peer() const override { return {}; }

 private:
  using Call = std::function<void()>;  // nullptr: the stream is over

  class Session final : public NodeSession {
   public:
    explicit Session(LocalStream* stream) : stream_(stream) {}
    void send(EncodedMessage message) override { stream_->send_to_node(message); }
    void end() override { stream_->end_by_host(); }

   private:
    LocalStream* const stream_;
  };

  void send_to_node(const EncodedMessage& message) {
    const MutexLock lock(mutex_);
    if (ended_by_host_ || cancelled_) return;
    std::string bytes;
    for (const auto& part : message) bytes += *part;
    const size_t size = bytes.size();
    queue(
        [this, bytes = std::move(bytes)] {
          wire::HostMessage parsed;
          parsed.ParseFromString(bytes);  // our own bytes
          owner_->on_message(this, std::move(parsed));
        },
        size);
  }
  void end_by_host() {
    const MutexLock lock(mutex_);
    if (!std::exchange(ended_by_host_, true)) queue(nullptr);
  }

  void queue(Call call, size_t bytes = 0) FLEET_REQUIRES(mutex_) {
    if (!calls_.push(std::move(call), bytes)) abandon();
    ticker_.due_by(JobHost::Clock::now());
  }
  void abandon() FLEET_REQUIRES(mutex_) {
    ended_by_node_ = cancelled_ = true;
    calls_.drop_after(0);
    queue_closed();
    if (ended_by_host_) queue(nullptr);
  }
  void queue_closed() FLEET_REQUIRES(mutex_) {
    queue([this] { host_->on_stream_closed(&session_); });
  }

  JobHost::Clock::time_point deliver() {
    for (;;) {
      Call call;
      {
        const MutexLock lock(mutex_);
        if (calls_.empty()) return JobHost::Clock::time_point::max();
        call = std::move(calls_.front());
        calls_.pop();
      }
      if (!call) break;
      call();
    }
    owner_->on_stream_end(this, {StreamEnd::Kind::kClosed, "it closed the connection"});
    host_->on_session_done(&session_);
    delete this;
    return JobHost::Clock::time_point::max();
  }

  const std::shared_ptr<JobHost> host_;
  const std::shared_ptr<NodeStreamOwner> owner_;
  Session session_{this};
  Mutex mutex_;
  BoundedQueue<Call> calls_ FLEET_GUARDED_BY(mutex_);
  bool ended_by_node_ FLEET_GUARDED_BY(mutex_) = false;
  bool ended_by_host_ FLEET_GUARDED_BY(mutex_) = false;
  bool cancelled_ FLEET_GUARDED_BY(mutex_) = false;
  Ticker ticker_;  // last: it uses the rest
};

}  // namespace

NodeTransport make_local_transport(std::shared_ptr<JobHost> host) {
  return [host = std::move(host)](std::shared_ptr<NodeStreamOwner> owner, wire::NodeMessage join) {
    auto* stream = new LocalStream(host, std::move(owner));
    stream->begin(std::move(join));
    return stream;
  };
}

}  // namespace fleet
