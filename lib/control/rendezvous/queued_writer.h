// Writes to one gRPC stream. gRPC allows one write at a time; the others wait in a queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/mutex.h"

namespace fleet {

// Base of a reactor of gRPC's callback API whose messages of type Out may come from any thread.
// Thread-safe.
template <typename Reactor, typename Out>
class QueuedWriter : public Reactor {
 public:
  // most_queued: the number of messages that may wait for a peer that does not read.
  explicit QueuedWriter(size_t most_queued = SIZE_MAX) : most_queued_(most_queued) {}

  // Drops the message if the stream is closed or over. Returns false if the queue is full: the
  // messages that wait are dropped and the stream is closed; the caller cancels it.
  bool write(Out message) FLEET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (closed_ || over_) return true;
    if (queue_.size() >= most_queued_) {
      queue_.resize(1);  // gRPC still reads the first
      queued_bytes_ = bytes_of(queue_.front());
      closed_ = true;
      return false;
    }
    queued_bytes_ += bytes_of(message);
    queue_.push_back(std::move(message));
    write_next();
    return true;
  }
  // Accepts no further message. on_last_written() follows the queued ones.
  void close() FLEET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    closed_ = true;
    write_next();
  }

  size_t queued_bytes() const FLEET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return queued_bytes_;
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (ok) {
      queued_bytes_ -= bytes_of(queue_.front());
      queue_.pop_front();
    } else {
      queue_.clear();  // broken: the pending read reports it too
      queued_bytes_ = 0;
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
  virtual void on_drained() FLEET_REQUIRES(mutex_) {}  // the queue is empty

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

  const size_t most_queued_;                        // at least 1
  std::deque<Out> queue_ FLEET_GUARDED_BY(mutex_);  // the first is being written
  size_t queued_bytes_ FLEET_GUARDED_BY(mutex_) = 0;
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  bool closed_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet
