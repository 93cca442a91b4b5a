// Shared-memory control block that keeps the ranks of one host in step: the progress of each rank,
// the first failure, and a doorbell for each sleeper. It is in a Segment. Ranks are processes or
// threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/running_clock.h"
#include "comm/group.h"
#include "comm/peer_wait_timer.h"

namespace fleet {

// Location of a rank's operation buffer, in terms that the other ranks can resolve.
struct SharedAddress {
  uint64_t segment = 0;  // segment id; 0: not in shared memory
  uint64_t offset = 0;   // in-process groups: the address
};

// The operation that a rank executes. It must be the same on all ranks.
struct StepOperation {
  const char* name = "";
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  size_t count = 0;
};

class ControlBlock {
 public:
  // Two independent sequences of steps: operations on the stream, and collective calls on the host
  // (allocate).
  enum Channel { kStream, kHost };
  static size_t bytes(int size);

  // Creates this rank's entry in the control block at `memory`, which must be page-aligned and zero
  // before the first rank arrives. Does not block.
  ControlBlock(char* memory, const Group& group, std::chrono::milliseconds timeout);
  ~ControlBlock();  // marks this rank as having left
  ControlBlock(const ControlBlock&) = delete;

  // Waits until every rank of the group has arrived. kTimeout names the missing ranks.
  void wait_for_all_ranks();
  int pid_of(int rank) const;
  // Whether the rank destroyed its communicator in an orderly way.
  bool has_left(int rank) const;

  // Throws if the group has failed. Every operation calls it first.
  void check() const;
  // Arrives at the next step and waits for the others. If the calls differ, every rank fails with
  // kInternal.
  void step(Channel channel, const StepOperation& call);
  // Like the above on the stream; also publishes these addresses to the other ranks.
  void step_and_publish(const StepOperation& call, SharedAddress in, SharedAddress out);
  // The address that `rank` published at the last such step. Valid until this rank's next step of
  // any kind.
  const SharedAddress& input_of(int rank) const { return slots_[rank].stream.in; }
  const SharedAddress& output_of(int rank) const { return slots_[rank].stream.out; }
  // Waits for a condition that rank `from` establishes before it calls ring() for this rank.
  template <typename Ready>
  void wait(const Ready& ready, int from) {
    wait_until(ready, [&](int rank) { return rank == from && !ready(); });
  }
  void ring(int rank);

  // For a group that is part of a larger one, where the late rank may be outside this group. Called
  // on a timeout; returns the names of the late ranks, or "" to report the missing ranks of this
  // group. Set it before the first operation.
  void set_late_ranks(std::function<std::string()> names) { late_ranks_ = std::move(names); }
  // Fails every rank with `error`, unless an earlier failure exists. Returns the failure that all
  // ranks report.
  Error fail_all(const Error& error);
  // Fails this rank with `why` and the other ranks with the resulting error.
  void abort(const Error& why);

  // Text from one rank to all others, valid between two steps of the host channel.
  static constexpr size_t kNoticeBytes = 256;
  char* notice() const { return header_->notice; }

 private:
  enum State : uint32_t { kAbsent, kHere, kLeft };
  enum ErrorState : uint32_t { kNone, kWriting, kWritten };
  struct Header {
    alignas(128) std::atomic<uint64_t> arrived[2];   // steps of all ranks, by channel
    alignas(128) std::atomic<uint32_t> error_state;  // ErrorState
    SerializedError error;
    char notice[kNoticeBytes];
  };
  struct Arrival {
    std::atomic<uint64_t> steps;
    uint64_t call[2];  // indexed by the parity of the step; read until the next but one
    SharedAddress in, out;
  };
  struct RankSlot {  // written by its own rank, except for the doorbell
    alignas(128) std::atomic<uint32_t> doorbell;
    std::atomic<uint32_t> sleepers;
    std::atomic<uint32_t> state;
    std::atomic<int32_t> pid;
    alignas(64) Arrival stream;
    alignas(64) Arrival host;
    Arrival& arrival(Channel channel) { return channel == kStream ? stream : host; }
  };

  template <typename Ready, typename Missing>
  void wait_until(const Ready& ready, const Missing& missing);
  void sleep(uint32_t bell, std::chrono::steady_clock::time_point until);
  void compare_calls(Channel channel, uint64_t step);
  // Throws if waiting cannot succeed: a failure, a missing rank that has left, or the deadline.
  template <typename Missing>
  void check_waiting(const Missing& missing, RunningDeadline* deadline);
  [[noreturn]] void fail_left(const std::vector<int>& ranks);
  [[noreturn]] void fail_late(const std::vector<int>& ranks);

  const Group group_;
  const std::chrono::milliseconds timeout_;
  Header* const header_;
  RankSlot* const slots_;
  const int spins_;
  std::function<std::string()> late_ranks_;
  std::atomic<bool> aborted_{false};
  mutable Mutex mutex_;
  std::optional<Error> why_ FLEET_GUARDED_BY(mutex_);  // the argument of abort()
};

// missing(rank): whether this rank still waits for `rank`. Waiting does not allocate.
template <typename Ready, typename Missing>
void ControlBlock::wait_until(const Ready& ready, const Missing& missing) {
  for (int i = 0; i < spins_; ++i) {
    if (ready()) return;
    spin_pause();
  }
  const PeerWaitTimer waiting;
  RunningDeadline deadline(timeout_);
  RankSlot& mine = slots_[group_.rank];
  struct Sleeper {  // registered while it lives
    explicit Sleeper(std::atomic<uint32_t>& count) : count(count) { count.fetch_add(1); }
    ~Sleeper() { count.fetch_sub(1); }
    std::atomic<uint32_t>& count;
  };
  for (;;) {
    const uint32_t bell = mine.doorbell.load();
    // Registers before the last check: a rank that changes state after it sees a sleeper and rings.
    const Sleeper sleeper(mine.sleepers);
    if (ready()) return;
    check_waiting(missing, &deadline);
    sleep(bell, deadline.next_look());
  }
}

template <typename Missing>
void ControlBlock::check_waiting(const Missing& missing, RunningDeadline* deadline) {
  check();
  const auto pick = [&](bool who_left) {
    std::vector<int> ranks;
    for (int rank = 0; rank < group_.size; ++rank) {
      // The order matters: a rank that left in an orderly way has finished all its work first.
      if ((!who_left || has_left(rank)) && missing(rank)) ranks.push_back(rank);
    }
    return ranks;
  };
  if (const auto left = pick(true); !left.empty()) fail_left(left);
  if (!deadline->passed()) return;
  if (const auto late = pick(false); !late.empty()) fail_late(late);
}

}  // namespace fleet
