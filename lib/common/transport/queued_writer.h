// Writes to one gRPC stream. gRPC allows one write at a time; the others wait in a queue.
#pragma once

#include <cstddef>
#include <utility>

#include "base/mutex.h"
#include "transport/bounded_queue.h"

namespace fleet {

// Base of a reactor of gRPC's callback API whose messages of type Out may come from any thread.
// Thread-safe.
template <typename Reactor, typename Out>
class QueuedWriter : public Reactor {
 public:
  // max_bytes: how much may wait for a peer that does not read.
  explicit QueuedWriter(size_t max_bytes = kMaxUnsentBytes) : queue_(max_bytes) {}

  // Drops the message if the stream is closed or over. If the queue is full, the stream is
  // cancelled, and the waiting messages are dropped.
  void write(Out message) FLEET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (closed_ || over_) return;
    const size_t bytes = bytes_of(message);
    if (queue_.push(std::move(message), bytes)) return write_next();
    queue_.drop_after(1);  // gRPC still reads the first
    closed_ = true;
    on_overflow();
  }
  // Accepts no further message. on_last_written() follows the queued ones.
  void close() FLEET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    closed_ = true;
    write_next();
  }

  size_t queued_bytes() const FLEET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return queue_.bytes();
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (ok) {
      queue_.pop();
    } else {
      queue_.drop_after(0);  // broken: the pending read reports it too
    }
    if (queue_.empty()) on_drained();
    write_next();
  }

 protected:
  // The stream is over: starts no further write and drops messages from now on.
  void stop_writing() FLEET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  // Once, after close() and the last write: Finish() of a server, StartWritesDone() of a client.
  virtual void on_last_written() FLEET_REQUIRES(mutex_) = 0;
  virtual void on_drained() FLEET_REQUIRES(mutex_) {}     // the queue is empty
  virtual void on_overflow() FLEET_REQUIRES(mutex_) = 0;  // cancels the stream

  mutable Mutex mutex_;
  bool over_ FLEET_GUARDED_BY(mutex_) = false;
  bool last_written_ FLEET_GUARDED_BY(mutex_) = false;

 private:
  static size_t bytes_of(const Out& message) {
    if constexpr (requires { message.ByteSizeLong(); }) {
      return message.ByteSizeLong();
    } else {
      return message.Length();  // encoded already
    }
  }
  void write_next() FLEET_REQUIRES(mutex_) {
    if (writing_ || over_ || last_written_) return;
    if (!queue_.empty()) {
      writing_ = true;
      return this->StartWrite(&queue_.front());
    }
    if (!closed_) return;
    last_written_ = true;
    on_last_written();
  }

  BoundedQueue<Out> queue_ FLEET_GUARDED_BY(mutex_);  // the first is being written
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  bool closed_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet
