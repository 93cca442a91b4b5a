// Amount of data that a rank exchanges with the others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fleet {

// Payload bytes, counted when they are passed to a socket's transport or copied from one rank's
// memory to another's. A byte that several ranks read counts once for each. Over all ranks of a
// group, sent and received are equal between operations.
struct Traffic {
  int64_t sent = 0;
  int64_t received = 0;
  int64_t sent_between_hosts = 0;  // the part of `sent` whose receiver is on another host

  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    received += other.received;
    sent_between_hosts += other.sent_between_hosts;
    return *this;
  }
  Traffic operator-(const Traffic& other) const {
    return {sent - other.sent, received - other.received,
            sent_between_hosts - other.sent_between_hosts};
  }
};

// Thread-safe.
class TrafficCounter {
 public:
  void sent(size_t bytes, bool to_other_host = false) {
    sent_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    if (!to_other_host) return;
    between_hosts_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }
  void received(size_t bytes) {
    received_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }
  Traffic read() const { return {sent_, received_, between_hosts_}; }

 private:
  std::atomic<int64_t> sent_{0}, received_{0}, between_hosts_{0};
};

}  // namespace fleet
