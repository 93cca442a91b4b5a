#include "ps/transport/outgoing.h"

#include <algorithm>
#include <utility>

namespace fleet::ps {

void Outgoing::push(Message message) {
  const size_t bytes = message.bytes();
  const MutexLock lock(mutex_);
  if (closed_) return;
  unsent_ += bytes;
  waiting_ += bytes;
  items_.push_back({FrameKind::kMessage, std::move(message), bytes});
}

void Outgoing::push(FrameKind control) {
  const MutexLock lock(mutex_);
  if (!closed_) items_.push_back({control});
}

void Outgoing::close() {
  const MutexLock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  items_.push_back({FrameKind::kClose});
}

bool Outgoing::next(Frame* frame, size_t largest) {
  frame->parts.clear();
  const MutexLock lock(mutex_);
  if (items_.empty()) return false;
  const Item& first = items_.front();
  if (std::min(kFrameBytes, first.bytes - taken_) > largest) return false;
  frame->header = {};
  frame->header.kind = first.kind;
  if (first.kind != FrameKind::kMessage) {
    items_.pop_front();
    return true;
  }
  if (taken_ > 0) frame->header.kind = FrameKind::kMore;
  frame->header.total = first.bytes;
  frame->header.message = first.message.header;
  take_payload(frame);
  if (taken_ < first.bytes) return true;
  items_.pop_front();
  part_ = offset_ = taken_ = 0;
  return true;
}

bool Outgoing::empty() const {
  const MutexLock lock(mutex_);
  return items_.empty();
}

void Outgoing::take_payload(Frame* frame) {
  const Item& first = items_.front();
  size_t left = std::min(kFrameBytes, first.bytes - taken_);
  frame->header.bytes = static_cast<uint32_t>(left);
  taken_ += left;
  waiting_ -= left;
  while (left > 0) {
    const Bytes& part = first.message.parts[part_];
    const size_t size = std::min(left, part.data.size() - offset_);
    if (size > 0) frame->parts.push_back({part.data.subspan(offset_, size), part.owner});
    offset_ += size;
    left -= size;
    if (offset_ < part.data.size()) continue;
    ++part_;
    offset_ = 0;
  }
}

void Outgoing::release(size_t bytes) {
  const MutexLock lock(mutex_);
  unsent_ -= bytes;
  if (unsent_ <= wake_at_ || ended_) changed_.notify_all();
}

void Outgoing::end() {
  std::deque<Item> dropped;  // their owners may take time
  const MutexLock lock(mutex_);
  ended_ = closed_ = true;
  unsent_ -= waiting_;
  waiting_ = 0;
  part_ = offset_ = taken_ = 0;
  dropped.swap(items_);
  changed_.notify_all();
}

bool Outgoing::wait_until_unsent(size_t bytes, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  ++waiting_threads_;
  wake_at_ = std::max(wake_at_, bytes);
  while (ended_ ? unsent_ > 0 : unsent_ > bytes) {
    if (!changed_.wait_until(mutex_, deadline)) break;
  }
  if (--waiting_threads_ == 0) wake_at_ = 0;
  return !ended_ && unsent_ <= bytes;
}

bool Outgoing::wait_until_ended(std::chrono::steady_clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (!ended_ && changed_.wait_until(mutex_, deadline)) {
  }
  return ended_;
}

}  // namespace fleet::ps
