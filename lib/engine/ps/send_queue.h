// The gradients of an asynchronous trainer that wait for their push.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/mutex.h"
#include "ps/dense_payload.h"
#include "ps/row_push.h"

namespace fleet::ps {

// The gradients of one step, or the sum of several steps.
struct PendingPush {
  PushHead head = {};
  int64_t step = 0;                                  // the last one
  std::vector<std::vector<std::byte>> servers = {};  // a push's bytes behind its head, by server
  RowPush rows = {};                                 // empty without tables
};

// The sum, from left to right by step, with the last learning rate; rows are added by id. Pushes
// with a bad loss or gradient are left out, unless all are bad. segments: describe the bytes, by
// server.
PendingPush merge(std::vector<PendingPush> pushes,
                  const std::vector<std::vector<BlockSegment>>& segments);

// A bounded queue between a trainer's thread, which pushes, and the thread that sends.
class SendQueue {
 public:
  explicit SendQueue(int capacity);

  // Waits while the queue is full. Does nothing after end().
  void push(PendingPush push);
  // Returns up to `most` pushes, in order. Waits for the first one, and `patience` for each
  // other one, unless the trainer is in a hurry. Empty after `idle` without one, unless held, if
  // the trainer's hurry begins, and after end(). What the previous call returned counts as sent.
  std::vector<PendingPush> take(int most, std::chrono::milliseconds patience,
                                std::chrono::milliseconds idle);
  // The sender does not wait for more pushes while the trainer waits for it.
  void hurry(bool on);
  // Returns when everything is sent, and the sender is in take(), which returns nothing until
  // release(); or after end().
  void hold();
  void release();
  void end();
  bool ended() const;
  bool empty() const;
  size_t size() const;  // those being sent do not count

 private:
  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<PendingPush> waiting_ FLEET_GUARDED_BY(mutex_);
  bool sending_ FLEET_GUARDED_BY(mutex_) = false;  // the sender waits for no first push
  bool hurries_ FLEET_GUARDED_BY(mutex_) = false;
  bool woken_ FLEET_GUARDED_BY(mutex_) = false;  // a hurry has begun
  bool held_ FLEET_GUARDED_BY(mutex_) = false;
  bool ended_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet::ps
