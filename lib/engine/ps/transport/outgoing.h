// The messages that a connection has yet to send, cut into frames.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

#include "base/mutex.h"
#include "ps/message.h"
#include "ps/transport/frame.h"

namespace fleet::ps {

// A payload counts as unsent until the transport has released it: only then may its sender change
// the memory. Thread-safe.
class Outgoing {
 public:
  struct Frame {
    FrameHeader header;
    std::vector<Bytes> parts;  // its payload; release() their bytes once they are copied
  };

  // These do nothing after close().
  void push(Message message);
  void push(FrameKind control);
  void close();  // kClose becomes the last frame

  // The next frame; false if none is waiting, or its payload is larger than `largest`. The caller
  // sends frames in this order.
  bool next(Frame* frame, size_t largest = kFrameBytes);
  bool empty() const;
  void release(size_t bytes);

  // The connection has ended: drops the rest of the messages, and ends all waits.
  void end();
  // False if the time or the connection ended first. After the end of the connection it still
  // waits, within the time, until the transport has released all payloads.
  bool wait_until_unsent(size_t bytes, std::chrono::milliseconds timeout);
  bool wait_until_ended(std::chrono::steady_clock::time_point deadline);

 private:
  struct Item {
    FrameKind kind;
    Message message = {};
    size_t bytes = 0;
  };
  void take_payload(Frame* frame) FLEET_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Item> items_ FLEET_GUARDED_BY(mutex_);
  // The part of the first message that comes next.
  size_t part_ FLEET_GUARDED_BY(mutex_) = 0, offset_ FLEET_GUARDED_BY(mutex_) = 0;
  size_t taken_ FLEET_GUARDED_BY(mutex_) = 0;    // bytes of the first message
  size_t unsent_ FLEET_GUARDED_BY(mutex_) = 0;   // waiting or in the transport
  size_t waiting_ FLEET_GUARDED_BY(mutex_) = 0;  // the part that next() has not returned
  size_t wake_at_ FLEET_GUARDED_BY(mutex_) = 0;  // threads wait until unsent_ is at most this
  int waiting_threads_ FLEET_GUARDED_BY(mutex_) = 0;
  bool closed_ FLEET_GUARDED_BY(mutex_) = false;  // takes no more
  bool ended_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet::ps
