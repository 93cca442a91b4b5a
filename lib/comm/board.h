// The control block through which ranks of one host keep in step: who has come how far, what went
// wrong, and a doorbell for each sleeper. It lies in a Segment; ranks may be processes or threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/fault.h"
#include "comm/host_communicator.h"
#include "comm/peer_wait.h"

namespace fleet {

// Where a rank's memory for an operation is, in terms that others understand.
struct Place {
  uint64_t segment = 0;  // its id; 0: not in shared memory
  uint64_t offset = 0;   // in-process groups: the address
};

// Which operation a rank is in; all must be in the same.
struct Call {
  const char* name = "";
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  size_t count = 0;
};

class Board {
 public:
  // Two sequences of steps that do not disturb each other: of operations on the stream, and of
  // collective calls of the host (allocate).
  enum Channel { kStream, kHost };
  static size_t bytes(int size);

  // A place in the control block at `memory` (page-aligned, zero before the first rank comes).
  // Waits for nobody.
  Board(char* memory, const Group& group, std::chrono::milliseconds timeout);
  ~Board();  // says that this rank has left
  Board(const Board&) = delete;

  // Waits until every rank of the group has come. kTimeout names the missing.
  void wait_for_everyone_here();
  int pid_of(int rank) const;
  // Whether the rank's communicator was destroyed in good order.
  bool has_left(int rank) const;

  // Throws what has gone wrong, if something has. Every operation begins with it.
  void check() const;
  // Arrives at the next step and waits for the others. Everybody fails with kInternal where calls
  // differ.
  void step(Channel channel, const Call& call);
  // The same on the stream, and shows the others these places.
  void step_showing(const Call& call, Place in, Place out);
  // What `rank` showed at the last such step. Valid until this rank's next step of any kind.
  const Place& in_of(int rank) const { return lines_[rank].stream.in; }
  const Place& out_of(int rank) const { return lines_[rank].stream.out; }
  // Waits for something that rank `from` does and then calls ring() for.
  template <typename Ready>
  void wait(const Ready& ready, int from) {
    wait_until(ready, [&](int rank) { return rank == from && !ready(); });
  }
  void ring(int rank);

  // Where a group is part of a larger one: who keeps it waiting may be outside. Called at a
  // timeout; returns names, or "" for those of this group that are missing. Before the first
  // operation.
  void on_late(std::function<std::string()> names) { late_names_ = std::move(names); }
  // Fails everybody with this, unless something else has gone wrong before. Returns what everybody
  // fails with.
  Error raise(const Error& error);
  // Fails this rank with `why` and the others with what follows from it.
  void abort(const Error& why);

  // Text from one rank to all, between two steps of the host channel.
  static constexpr size_t kNoticeBytes = 256;
  char* notice() const { return header_->notice; }

 private:
  enum State : uint32_t { kAbsent, kHere, kLeft };
  enum FaultState : uint32_t { kNone, kWriting, kWritten };
  struct Header {
    alignas(128) std::atomic<uint64_t> arrived[2];   // all ranks' steps, by channel
    alignas(128) std::atomic<uint32_t> fault_state;  // FaultState
    Fault fault;
    char notice[kNoticeBytes];
  };
  struct Arrival {
    std::atomic<uint64_t> steps;
    uint64_t call[2];  // by the parity of the step: read until the next but one
    Place in, out;
  };
  struct Line {  // written by its rank, but for the doorbell
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
  void sleep(uint32_t bell, std::chrono::steady_clock::time_point deadline);
  void compare_calls(Channel channel, uint64_t step);
  // Throws where waiting is in vain: a failure, a missing rank that has left, the deadline.
  template <typename Missing>
  void check_waiting(const Missing& missing, std::chrono::steady_clock::time_point deadline);
  [[noreturn]] void fail_left(const std::vector<int>& ranks);
  [[noreturn]] void fail_late(const std::vector<int>& ranks);

  const Group group_;
  const std::chrono::milliseconds timeout_;
  Header* const header_;
  Line* const lines_;
  const int spins_;
  std::function<std::string()> late_names_;
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  std::optional<Error> why_;  // what abort() was called with
};

// missing(rank): whether that rank is waited for. Waiting allocates nothing.
template <typename Ready, typename Missing>
void Board::wait_until(const Ready& ready, const Missing& missing) {
  for (int i = 0; i < spins_; ++i) {
    if (ready()) return;
    __builtin_ia32_pause();
  }
  const PeerWait waiting;
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  Line& mine = lines_[group_.rank];
  struct Sleeper {  // announced while it lives
    explicit Sleeper(std::atomic<uint32_t>& count) : count(count) { count.fetch_add(1); }
    ~Sleeper() { count.fetch_sub(1); }
    std::atomic<uint32_t>& count;
  };
  for (;;) {
    const uint32_t bell = mine.doorbell.load();
    // Announced before the last look: whoever changes something after it sees a sleeper and rings.
    const Sleeper sleeper(mine.sleepers);
    if (ready()) return;
    check_waiting(missing, deadline);
    sleep(bell, deadline);
  }
}

template <typename Missing>
void Board::check_waiting(const Missing& missing, std::chrono::steady_clock::time_point deadline) {
  check();
  const auto pick = [&](bool who_left) {
    std::vector<int> ranks;
    for (int rank = 0; rank < group_.size; ++rank) {
      // Asked in this order: who left in good order has done before all that it was to do.
      if ((!who_left || has_left(rank)) && missing(rank)) ranks.push_back(rank);
    }
    return ranks;
  };
  if (const auto left = pick(true); !left.empty()) fail_left(left);
  if (std::chrono::steady_clock::now() < deadline) return;
  if (const auto late = pick(false); !late.empty()) fail_late(late);
}

}  // namespace fleet
