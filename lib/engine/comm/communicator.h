// Collective communication between the ranks of a group.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "observe/collective_log.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

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

enum class ReduceOp { kSum, kMin, kMax };

// Contiguous elements in the memory of the communicator's device.
struct View {
  void* data = nullptr;
  size_t count = 0;  // elements
  DType dtype = DType::kFloat32;
  size_t bytes() const { return count * size_of(dtype); }
  char* at(size_t element) const { return static_cast<char*>(data) + element * size_of(dtype); }
  View part(size_t begin, size_t elements) const { return {at(begin), elements, dtype}; }
};

// A call of a communicator.
struct CollectiveCall {
  CollectiveKind kind;
  View in, out;  // broadcast, send and recv: `in` only
  ReduceOp op = ReduceOp::kSum;
  int peer = -1;  // root, or the other rank of a message
};

// Every rank of the group issues the same calls in the same order, with equal counts and types.
// Calls are enqueued on the stream, ordered after its earlier work, and return immediately.
// Failures are reported by the stream's synchronize() and by events: kPeerLost names the peer that
// died, kTimeout the peer that hung longer than the timeout. `in` may equal `out`. Only abort() may
// be called from a thread other than the issuing one.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "shm", "gloo", "inprocess", "hierarchical(shm, gloo)" or "nccl", for logs.
  virtual std::string name() const = 0;

  // Zeroed memory that this transport accesses fastest (a shared segment, registered memory).
  // Collective: all ranks make the same call. Lives as long as the buffer and the communicator.
  virtual Buffer allocate(size_t bytes) = 0;
  // Creates a communicator over these ranks of this group, in this order. The caller must be one of
  // them. Collective over those ranks only.
  virtual std::unique_ptr<Communicator> split(std::span<const int> ranks) = 0;

  virtual void issue(const CollectiveCall& call, Stream& stream) = 0;
  void all_reduce(View in, View out, ReduceOp op, Stream& stream) {
    issue({CollectiveKind::kAllReduce, in, out, op}, stream);
  }
  void reduce(View in, View out, ReduceOp op, int root, Stream& stream) {  // out: on the root only
    issue({CollectiveKind::kReduce, in, out, op, root}, stream);
  }
  void broadcast(View data, int root, Stream& stream) {
    issue({.kind = CollectiveKind::kBroadcast, .in = data, .peer = root}, stream);
  }
  void all_gather(View in, View out, Stream& stream) {  // out.count = size * in.count
    issue({CollectiveKind::kAllGather, in, out}, stream);
  }
  void reduce_scatter(View in, View out, ReduceOp op, Stream& stream) {  // in = size * out
    issue({CollectiveKind::kReduceScatter, in, out, op}, stream);
  }
  void send(View data, int peer, Stream& stream) {
    issue({.kind = CollectiveKind::kSend, .in = data, .peer = peer}, stream);
  }
  void recv(View data, int peer, Stream& stream) {
    issue({.kind = CollectiveKind::kRecv, .in = data, .peer = peer}, stream);
  }
  void barrier(Stream& stream) { issue({.kind = CollectiveKind::kBarrier}, stream); }

  // Names the group in the records of its calls, such as "data parallel". Every rank makes the same
  // call. Does nothing if the communicator is not recorded.
  virtual void set_group_name(const std::string& /*name*/) {}

  // Fails every pending and later call of this rank with `why`, immediately. May be called from any
  // thread, any number of times.
  virtual void abort(const Error& why) = 0;

  // GPU streams do not carry failures: aborted calls look complete. After waiting for work that
  // contains calls of this communicator, call this to see whether they succeeded. Throws the
  // failure. Any thread.
  virtual void throw_if_failed() const {}
  // Call this after each launch of a Recording that contains calls of this communicator, with the
  // stream it was launched on. The calls are watched from then on as if they had been issued now.
  virtual void launched(Stream& /*stream*/) {}

  // The traffic of this rank through this communicator, excluding communicators split from it;
  // completed operations only. Empty if the transport does not report it: nccl chooses its
  // algorithm itself. Any thread.
  virtual std::optional<Traffic> traffic() const { return std::nullopt; }
};

}  // namespace fleet
