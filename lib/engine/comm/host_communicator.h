// Shared base of the host's backends: checks arguments and enqueues work on the HostStream. A
// backend implements the operations that run on the stream's thread.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/group.h"

namespace fleet {

// The enqueued work refers to the communicator, which must outlive it. The do_ functions run
// immediately, on the calling thread, with checked arguments; a hierarchical communicator calls
// those of its parts.
class HostCommunicator : public Communicator {
 public:
  explicit HostCommunicator(Group group) : group_(std::move(group)) {}
  int rank() const final { return group_.rank; }
  int size() const final { return group_.size; }
  const Group& group() const { return group_; }

  void all_reduce(View in, View out, ReduceOp op, Stream& stream) final;
  void reduce(View in, View out, ReduceOp op, int root, Stream& stream) final;
  void broadcast(View data, int root, Stream& stream) final;
  void all_gather(View in, View out, Stream& stream) final;
  void reduce_scatter(View in, View out, ReduceOp op, Stream& stream) final;
  void send(View data, int peer, Stream& stream) final;
  void recv(View data, int peer, Stream& stream) final;
  void barrier(Stream& stream) final;
  std::optional<Traffic> traffic() const override { return traffic_.read(); }

  virtual void do_all_reduce(View in, View out, ReduceOp op) = 0;
  virtual void do_reduce(View in, View out, ReduceOp op, int root) = 0;
  virtual void do_broadcast(View data, int root) = 0;
  virtual void do_all_gather(View in, View out) = 0;
  virtual void do_reduce_scatter(View in, View out, ReduceOp op) = 0;
  virtual void do_send(View data, int peer) = 0;
  virtual void do_recv(View data, int peer) = 0;
  virtual void do_barrier() = 0;

 protected:
  const Group group_;
  TrafficCounter traffic_;
};

}  // namespace fleet
