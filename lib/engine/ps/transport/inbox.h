// Delivers what a connection receives to its handler, in order, one call at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/mutex.h"
#include "ps/connection.h"

namespace fleet::ps {

// Thread-safe.
class Inbox {
 public:
  // A handler that takes its time is not given more: the other end waits.
  static constexpr size_t kFullBytes = size_t{8} << 20;

  // room: called when it is no longer full, by the delivering thread.
  Inbox(ConnectionHandler& handler, std::function<void()> room)
      : handler_(handler), room_(std::move(room)) {}

  // Begins to deliver what push() and finish() have left, and keeps the connection alive until
  // closed() has returned. call_opened: opened() is still to be called. `deliver`: runs each
  // delivery, in order, and nothing may arrive before this call; null: a thread of its own. Throws
  // kIo if the system refuses the thread.
  void start(const std::shared_ptr<Connection>& connection, bool call_opened,
             Deliver deliver = nullptr);

  void push(Message message);
  // closed() follows the messages before. Only the first call counts; later messages are dropped.
  void finish(const std::optional<Error>& why);

  bool full() const;
  // Until closed() has returned. False if the time ended first.
  bool wait_until_finished(std::chrono::steady_clock::time_point deadline) const;
  bool finished() const;

 private:
  struct Event {
    enum class Kind { kOpened, kMessage, kClosed } kind;
    Message message = {};
    std::optional<Error> why = std::nullopt;
    size_t bytes = 0;
  };
  void add(Event event);
  void run();
  void handle(Event event);

  ConnectionHandler& handler_;
  const std::function<void()> room_;
  Deliver deliver_;  // set before anything arrives
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::shared_ptr<Connection> connection_ FLEET_GUARDED_BY(mutex_);  // while it delivers
  std::deque<Event> events_ FLEET_GUARDED_BY(mutex_);
  size_t bytes_ FLEET_GUARDED_BY(mutex_) = 0;
  bool finishing_ FLEET_GUARDED_BY(mutex_) = false;
  bool finished_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet::ps
