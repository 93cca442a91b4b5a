// Code that backends share: the members of a group, the check of a call's arguments, and the base
// of the host's backends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"

namespace fleet {

// The members of a group and their names in messages.
struct Group {
  int rank = 0;
  int size = 1;
  std::vector<int> names;  // by rank

  std::string name_of(int member) const { return "rank " + std::to_string(names[member]); }
  // "rank 3", "ranks 1, 4"
  std::string name_of(const std::vector<int>& members) const;
  // The subgroup of these members, in this order. kInternal if it is empty, does not contain the
  // caller, or names a member twice.
  Group subgroup(std::span<const int> ranks) const;
};

// kInternal if the arguments are invalid. Call it before anything is enqueued.
void check_call(const CollectiveCall& call, const Group& group);

// Checks arguments and enqueues work on the HostStream. A backend implements the operations that
// run on the stream's thread. The enqueued work refers to the communicator, which must outlive it.
// The do_ functions run immediately, on the calling thread, with checked arguments; a hierarchical
// communicator calls those of its parts.
class HostCommunicator : public Communicator {
 public:
  explicit HostCommunicator(Group group) : group_(std::move(group)) {}
  int rank() const final { return group_.rank; }
  int size() const final { return group_.size; }
  const Group& group() const { return group_; }

  void issue(const CollectiveCall& call, Stream& stream) final;
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

 private:
  void run(const CollectiveCall& call);
};

// An Error without pointers, for shared memory and messages. Long texts are truncated.
struct SerializedError {
  void set(const Error& error);
  Error get() const;

  uint32_t code;
  char text[1020];  // failure, where and next, each zero-terminated
};

// The error for the other ranks when `group.rank` aborts with `why`: the same error if it names a
// lost or late rank, otherwise that this rank gave up.
Error error_for_peers(const Error& why, const Group& group);
Error rank_left_error(const std::string& names);
Error ranks_late_error(const std::string& names, int64_t milliseconds);

}  // namespace fleet
