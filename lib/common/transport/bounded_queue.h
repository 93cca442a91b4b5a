// The queue of every stream: bounds the messages that wait for a peer that reads slowly.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

namespace fleet {

// No stream of a peer that reads has this much waiting. Beyond it, the stream is ended.
inline constexpr size_t kMaxUnsentBytes = 64 << 20;

// Not thread-safe.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t max_bytes = kMaxUnsentBytes) : max_bytes_(max_bytes) {}

  // Returns false, and drops the item, if the queue is full. `bytes`: the size of its contents.
  bool push(T item, size_t bytes) {
    if (bytes_ + items_.size() * kItemBytes >= max_bytes_) return false;
    items_.push_back({std::move(item), bytes});
    bytes_ += bytes;
    return true;
  }
  T& front() { return items_.front().value; }
  void pop() {
    bytes_ -= items_.front().bytes;
    items_.pop_front();
  }
  bool empty() const { return items_.empty(); }
  size_t bytes() const { return bytes_; }
  // Drops all items behind the first `kept`.
  void drop_after(size_t kept) {
    while (items_.size() > kept) {
      bytes_ -= items_.back().bytes;
      items_.pop_back();
    }
  }

 private:
  // An item's own memory, so that small ones count too.
  static constexpr size_t kItemBytes = 256;

  struct Item {
    T value;
    size_t bytes;
  };
  const size_t max_bytes_;
  std::deque<Item> items_;
  size_t bytes_ = 0;
};

}  // namespace fleet
