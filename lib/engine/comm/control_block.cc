#include "comm/control_block.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace fleet {
namespace {

// Spin for about 10 us before sleeping if every rank has a core. Otherwise other ranks need the
// core.
constexpr int kSpins = 600, kSpinsWhenCrowded = 20;

constexpr const char* kCallNames[] = {"",           "all_reduce",     "reduce",  "broadcast",
                                      "all_gather", "reduce_scatter", "barrier", "allocate"};

uint64_t encode(const StepOperation& call) {
  uint64_t kind = 0;
  while (std::strcmp(kCallNames[kind], call.name) != 0) ++kind;
  return kind << 60 | static_cast<uint64_t>(call.dtype) << 56 |
         static_cast<uint64_t>(call.op) << 54 | static_cast<uint64_t>(call.root & 0x3ff) << 44 |
         (call.count & 0xfffffffffff);
}

std::string describe(uint64_t code) {
  std::string text = kCallNames[code >> 60];
  text += " of " + std::to_string(code & 0xfffffffffff) + " " +
          name_of(static_cast<DType>(code >> 56 & 0xf));
  const uint64_t root = code >> 44 & 0x3ff;
  if (root) text += " with root " + std::to_string(root);
  return text;
}

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* until) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation, value, until, nullptr,
                   FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

size_t ControlBlock::bytes(int size) {
  return (sizeof(Header) + size * sizeof(RankSlot) + 4095) / 4096 * 4096;
}

ControlBlock::ControlBlock(char* memory, const Group& group, std::chrono::milliseconds timeout)
    : group_(group),
      timeout_(timeout),
      header_(reinterpret_cast<Header*>(memory)),
      slots_(reinterpret_cast<RankSlot*>(memory + sizeof(Header))),
      spins_(group.size <= ::sysconf(_SC_NPROCESSORS_ONLN) ? kSpins : kSpinsWhenCrowded) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(Arrival) <= 64);
  slots_[group_.rank].pid = ::getpid();
  slots_[group_.rank].state = kHere;
  for (int rank = 0; rank < group_.size; ++rank) ring(rank);
}

ControlBlock::~ControlBlock() {
  slots_[group_.rank].state = kLeft;
  for (int rank = 0; rank < group_.size; ++rank) ring(rank);
}

void ControlBlock::wait_for_all_ranks() {
  const auto absent = [&](int rank) { return slots_[rank].state.load() == kAbsent; };
  wait_until(
      [&] {
        for (int rank = 0; rank < group_.size; ++rank) {
          if (absent(rank)) return false;
        }
        return true;
      },
      absent);
}

int ControlBlock::pid_of(int rank) const { return slots_[rank].pid.load(); }

bool ControlBlock::has_left(int rank) const { return slots_[rank].state.load() == kLeft; }

void ControlBlock::check() const {
  if (aborted_) {
    const MutexLock lock(mutex_);
    throw *why_;
  }
  if (header_->error_state.load() == kWritten) throw header_->error.get();
}

void ControlBlock::step_and_publish(const StepOperation& call, SharedAddress in,
                                    SharedAddress out) {
  Arrival& mine = slots_[group_.rank].stream;
  mine.in = in;
  mine.out = out;
  step(kStream, call);
}

void ControlBlock::step(Channel channel, const StepOperation& call) {
  Arrival& mine = slots_[group_.rank].arrival(channel);
  const uint64_t step = mine.steps.load(std::memory_order_relaxed) + 1;
  mine.call[step % 2] = encode(call);
  const uint64_t full = step * static_cast<uint64_t>(group_.size);
  std::atomic<uint64_t>& arrived = header_->arrived[channel];
  const bool last = arrived.fetch_add(1) + 1 == full;
  mine.steps.store(step);  // for messages: shows which rank is behind
  if (last) {
    for (int rank = 0; rank < group_.size; ++rank) {
      if (rank != group_.rank) ring(rank);
    }
  } else {
    wait_until([&] { return arrived.load() >= full; },
               [&](int rank) { return slots_[rank].arrival(channel).steps.load() < step; });
  }
  compare_calls(channel, step);
}

void ControlBlock::compare_calls(Channel channel, uint64_t step) {
  const uint64_t mine = slots_[group_.rank].arrival(channel).call[step % 2];
  for (int rank = 0; rank < group_.size; ++rank) {
    const uint64_t other = slots_[rank].arrival(channel).call[step % 2];
    if (other == mine) continue;
    const int low = std::min(rank, group_.rank), high = std::max(rank, group_.rank);
    const auto at = [&](int r) { return slots_[r].arrival(channel).call[step % 2]; };
    throw fail_all(Error(ErrorCode::kInternal,
                         "the ranks issue different operations: " + group_.name_of(low) + " " +
                             describe(at(low)) + ", " + group_.name_of(high) + " " +
                             describe(at(high)),
                         "communicator", "all ranks must run the same plan"));
  }
}

void ControlBlock::ring(int rank) {
  RankSlot& line = slots_[rank];
  if (line.sleepers.load() == 0) return;
  line.doorbell.fetch_add(1);
  futex(&line.doorbell, FUTEX_WAKE, INT32_MAX, nullptr);
}

void ControlBlock::sleep(uint32_t bell, std::chrono::steady_clock::time_point until) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(until.time_since_epoch());
  timespec end;  // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, as steady_clock does
  end.tv_sec = ns.count() / 1000000000;
  end.tv_nsec = ns.count() % 1000000000;
  futex(&slots_[group_.rank].doorbell, FUTEX_WAIT_BITSET, bell, &end);
}

void ControlBlock::fail_left(const std::vector<int>& ranks) {
  throw fail_all(rank_left_error(group_.name_of(ranks)));
}

void ControlBlock::fail_late(const std::vector<int>& ranks) {
  std::string names = late_ranks_ ? late_ranks_() : "";
  if (names.empty()) names = group_.name_of(ranks);
  throw fail_all(ranks_late_error(names, timeout_.count()));
}

Error ControlBlock::fail_all(const Error& error) {
  uint32_t seen = kNone;
  bool writes = header_->error_state.compare_exchange_strong(seen, kWriting);
  for (int i = 0; !writes && header_->error_state.load() != kWritten; ++i) {
    std::this_thread::yield();
    writes = i == 100000;  // the process that was writing must have died
  }
  if (writes) {
    header_->error.set(error);
    header_->error_state.store(kWritten);
    for (int rank = 0; rank < group_.size; ++rank) ring(rank);
    return error;
  }
  return header_->error.get();
}

void ControlBlock::abort(const Error& why) {
  {
    const MutexLock lock(mutex_);
    if (why_) return;
    why_ = why;
    aborted_ = true;
  }
  ring(group_.rank);
  fail_all(error_for_peers(why, group_));
}

}  // namespace fleet
