#include "ps/send_queue.h"

#include <algorithm>
#include <utility>

#include "comm/reduce.h"

namespace fleet::ps {
namespace {

bool is_bad(const PendingPush& push) {
  return push.head.loss_is_bad != 0 || push.head.bad_gradient != 0;
}

void add_gradients(const std::vector<BlockSegment>& segments, const std::vector<std::byte>& more,
                   std::vector<std::byte>* sum) {
  FLEET_CHECK(more.size() == sum->size() && more.size() == bytes_of(segments),
              "gradients of another size than their blocks");
  size_t at = 0;
  for (const BlockSegment& segment : segments) {
    void* out = sum->data() + at;
    const void* in[] = {out, more.data() + at};
    reduce_elements(segment.dtype, ReduceOp::kSum, &out, 1, in, 2,
                    segment.bytes / size_of(segment.dtype));
    at += segment.padded();
  }
}

}  // namespace

PendingPush merge(std::vector<PendingPush> pushes,
                  const std::vector<std::vector<BlockSegment>>& segments) {
  FLEET_CHECK(!pushes.empty(), "a sum of no gradients");
  const int64_t step = pushes.back().step;
  const float learning_rate = pushes.back().head.learning_rate;
  // A server would leave out the good ones with the bad one.
  if (!std::ranges::all_of(pushes, is_bad)) std::erase_if(pushes, is_bad);
  std::vector<RowPush> rows;
  for (PendingPush& push : pushes) rows.push_back(std::move(push.rows));
  PendingPush sum = std::move(pushes[0]);
  sum.rows = sum_of(std::move(rows));
  for (size_t i = 1; i < pushes.size(); ++i) {
    const PendingPush& more = pushes[i];
    for (size_t s = 0; s < segments.size(); ++s) {
      add_gradients(segments[s], more.servers[s], &sum.servers[s]);
    }
    sum.head.loss_is_bad |= more.head.loss_is_bad;
    if (sum.head.bad_gradient == 0) sum.head.bad_gradient = more.head.bad_gradient;
  }
  sum.step = step;
  sum.head.learning_rate = learning_rate;
  return sum;
}

SendQueue::SendQueue(int capacity) : capacity_(static_cast<size_t>(capacity)) {}

void SendQueue::push(PendingPush push) {
  const MutexLock lock(mutex_);
  while (!ended_ && waiting_.size() >= capacity_) changed_.wait(mutex_);
  if (ended_) return;
  waiting_.push_back(std::move(push));
  changed_.notify_all();
}

std::vector<PendingPush> SendQueue::take(int most, std::chrono::milliseconds patience,
                                         std::chrono::milliseconds idle) {
  const MutexLock lock(mutex_);
  sending_ = false;
  changed_.notify_all();
  auto until = std::chrono::steady_clock::now() + idle;
  while (!ended_ && waiting_.empty()) {
    if (held_) {
      changed_.wait(mutex_);
      continue;
    }
    if (std::exchange(woken_, false)) break;
    if (!changed_.wait_until(mutex_, until) && !held_) break;
  }
  // Set before the wait for more pushes, so that hold() waits until the taken ones are sent.
  sending_ = true;
  std::vector<PendingPush> taken;
  until = std::chrono::steady_clock::now() + patience;
  while (!ended_ && std::ssize(taken) < most) {
    if (!waiting_.empty()) {
      taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      changed_.notify_all();
      until = std::chrono::steady_clock::now() + patience;
      continue;
    }
    if (taken.empty() || hurries_ || held_ || std::chrono::steady_clock::now() >= until) break;
    changed_.wait_until(mutex_, until);
  }
  return taken;
}

void SendQueue::hurry(bool on) {
  const MutexLock lock(mutex_);
  hurries_ = woken_ = on;
  changed_.notify_all();
}

void SendQueue::hold() {
  const MutexLock lock(mutex_);
  held_ = true;
  changed_.notify_all();
  while (!ended_ && (sending_ || !waiting_.empty())) changed_.wait(mutex_);
}

void SendQueue::release() {
  const MutexLock lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void SendQueue::end() {
  const MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool SendQueue::ended() const {
  const MutexLock lock(mutex_);
  return ended_;
}

size_t SendQueue::size() const {
  const MutexLock lock(mutex_);
  return waiting_.size();
}

bool SendQueue::empty() const {
  const MutexLock lock(mutex_);
  return waiting_.empty();
}

}  // namespace fleet::ps
