// Lets gRPC's threads post to an Asio loop that may end before them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace fleet {

// Thread safe. Belongs to the loop; holders may outlive it.
class LoopGate {
 public:
  static std::shared_ptr<LoopGate> of(boost::asio::io_context& loop) {
    return boost::asio::use_service<Service>(loop).gate;
  }
  explicit LoopGate(boost::asio::io_context& loop) : loop_(&loop) {}

  // Runs `handler` in the loop's thread; does nothing once the loop is being destroyed.
  template <typename Handler>
  void post(Handler handler) {
    const MutexLock lock(mutex_);
    if (loop_) boost::asio::post(*loop_, std::move(handler));
  }

 private:
  // A loop shuts down its services before it destroys them, the newest first: the gate closes
  // before the scheduler ends.
  struct Service : boost::asio::io_context::service {
    inline static boost::asio::io_context::id id;
    explicit Service(boost::asio::io_context& loop)
        : boost::asio::io_context::service(loop), gate(std::make_shared<LoopGate>(loop)) {}
    void shutdown() override { gate->close(); }
    const std::shared_ptr<LoopGate> gate;
  };

  void close() {
    const MutexLock lock(mutex_);
    loop_ = nullptr;
  }

  Mutex mutex_;
  boost::asio::io_context* loop_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet
