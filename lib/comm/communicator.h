// Collective communication between the ranks of a group.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "comm/traffic.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace fleet {

enum class ReduceOp { kSum, kMin, kMax };

// Contiguous elements in memory of the communicator's device.
struct View {
  void* data = nullptr;
  size_t count = 0;  // elements
  DType dtype = DType::kFloat32;
  size_t bytes() const { return count * size_of(dtype); }
};

// Every rank of the group issues the same calls in the same order, with equal counts and types.
// Calls are enqueued on the stream, ordered after its earlier work, and return; failures come out
// of the stream's synchronize() and events as kPeerLost (a peer died: named) or kTimeout (a peer
// hung longer than the timeout). in may equal out. Only abort() may come from another thread than
// the one that issues.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "shm", "gloo", "inprocess", "hierarchical(shm, gloo)", "nccl": for logs.
  virtual std::string name() const = 0;

  // Zeroed memory that this transport is fast from (a shared segment, registered memory).
  // Collective: all ranks call it alike. Lives as long as the buffer and the communicator.
  virtual Buffer allocate(size_t bytes) = 0;
  // The group of these ranks of this group, in this order; the caller is one of them. Collective
  // over those ranks only.
  virtual std::unique_ptr<Communicator> split(std::span<const int> ranks) = 0;

  virtual void all_reduce(View in, View out, ReduceOp op, Stream& stream) = 0;
  virtual void reduce(View in, View out, ReduceOp op, int root,
                      Stream& stream) = 0;  // out: root only
  virtual void broadcast(View data, int root, Stream& stream) = 0;
  virtual void all_gather(View in, View out, Stream& stream) = 0;  // out.count = size * in.count
  virtual void reduce_scatter(View in, View out, ReduceOp op,
                              Stream& stream) = 0;  // in = size * out
  virtual void send(View data, int peer, Stream& stream) = 0;
  virtual void recv(View data, int peer, Stream& stream) = 0;
  virtual void barrier(Stream& stream) = 0;

  // Every pending and later call of this rank fails with `why`, at once. Any thread, any number of
  // times.
  virtual void abort(const Error& why) = 0;

  // Streams of a GPU carry no failures (calls that were given up look done): whoever has waited for
  // work with calls of this communicator in it asks here whether they succeeded. Throws what went
  // wrong. Any thread.
  virtual void throw_if_failed() const {}
  // To be called after each launch of a Recording that holds calls of this communicator, with the
  // stream it was launched on: they are watched from then on as if they had been issued now.
  virtual void launched(Stream& /*stream*/) {}

  // What this rank has exchanged through this communicator (not through those split from it), as
  // far as it has been waited for. Empty where the transport does not tell: nccl chooses its
  // algorithm itself. Any thread.
  virtual std::optional<Traffic> traffic() const { return std::nullopt; }
};

}  // namespace fleet
