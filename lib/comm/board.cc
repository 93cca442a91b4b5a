#include "comm/board.h"

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

uint64_t encode(const Call& call) {
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

size_t Board::bytes(int size) {
  return (sizeof(Header) + size * sizeof(Line) + 4095) / 4096 * 4096;
}

Board::Board(char* memory, const Group& group, std::chrono::milliseconds timeout)
    : group_(group),
      timeout_(timeout),
      header_(reinterpret_cast<Header*>(memory)),
      lines_(reinterpret_cast<Line*>(memory + sizeof(Header))),
      spins_(group.size <= ::sysconf(_SC_NPROCESSORS_ONLN) ? kSpins : kSpinsWhenCrowded) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(Arrival) <= 64);
  lines_[group_.rank].pid = ::getpid();
  lines_[group_.rank].state = kHere;
  for (int rank = 0; rank < group_.size; ++rank) ring(rank);
}

Board::~Board() {
  lines_[group_.rank].state = kLeft;
  for (int rank = 0; rank < group_.size; ++rank) ring(rank);
}

void Board::wait_for_everyone_here() {
  const auto absent = [&](int rank) { return lines_[rank].state.load() == kAbsent; };
  wait_until(
      [&] {
        for (int rank = 0; rank < group_.size; ++rank) {
          if (absent(rank)) return false;
        }
        return true;
      },
      absent);
}

int Board::pid_of(int rank) const { return lines_[rank].pid.load(); }

bool Board::has_left(int rank) const { return lines_[rank].state.load() == kLeft; }

void Board::check() const {
  if (aborted_) {
    std::lock_guard lock(mutex_);
    throw *why_;
  }
  if (header_->fault_state.load() == kWritten) throw header_->fault.get();
}

void Board::step_showing(const Call& call, Place in, Place out) {
  Arrival& mine = lines_[group_.rank].stream;
  mine.in = in;
  mine.out = out;
  step(kStream, call);
}

void Board::step(Channel channel, const Call& call) {
  Arrival& mine = lines_[group_.rank].arrival(channel);
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
               [&](int rank) { return lines_[rank].arrival(channel).steps.load() < step; });
  }
  compare_calls(channel, step);
}

void Board::compare_calls(Channel channel, uint64_t step) {
  const uint64_t mine = lines_[group_.rank].arrival(channel).call[step % 2];
  for (int rank = 0; rank < group_.size; ++rank) {
    const uint64_t other = lines_[rank].arrival(channel).call[step % 2];
    if (other == mine) continue;
    const int low = std::min(rank, group_.rank), high = std::max(rank, group_.rank);
    const auto at = [&](int r) { return lines_[r].arrival(channel).call[step % 2]; };
    throw raise(Error(ErrorCode::kInternal,
                      "the ranks issue different operations: " + group_.name_of(low) + " " +
                          describe(at(low)) + ", " + group_.name_of(high) + " " +
                          describe(at(high)),
                      "communicator", "all ranks must run the same plan"));
  }
}

void Board::ring(int rank) {
  Line& line = lines_[rank];
  if (line.sleepers.load() == 0) return;
  line.doorbell.fetch_add(1);
  futex(&line.doorbell, FUTEX_WAKE, INT32_MAX, nullptr);
}

void Board::sleep(uint32_t bell, std::chrono::steady_clock::time_point deadline) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch());
  timespec until;  // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, as steady_clock does
  until.tv_sec = ns.count() / 1000000000;
  until.tv_nsec = ns.count() % 1000000000;
  futex(&lines_[group_.rank].doorbell, FUTEX_WAIT_BITSET, bell, &until);
}

void Board::fail_left(const std::vector<int>& ranks) {
  throw raise(rank_left(group_.name_of(ranks)));
}

void Board::fail_late(const std::vector<int>& ranks) {
  std::string names = late_names_ ? late_names_() : "";
  if (names.empty()) names = group_.name_of(ranks);
  throw raise(ranks_late(names, timeout_.count()));
}

Error Board::raise(const Error& error) {
  uint32_t seen = kNone;
  bool writes = header_->fault_state.compare_exchange_strong(seen, kWriting);
  for (int i = 0; !writes && header_->fault_state.load() != kWritten; ++i) {
    std::this_thread::yield();
    writes = i == 100000;  // the process that was writing must have died
  }
  if (writes) {
    header_->fault.set(error);
    header_->fault_state.store(kWritten);
    for (int rank = 0; rank < group_.size; ++rank) ring(rank);
    return error;
  }
  return header_->fault.get();
}

void Board::abort(const Error& why) {
  {
    std::lock_guard lock(mutex_);
    if (why_) return;
    why_ = why;
    aborted_ = true;
  }
  ring(group_.rank);
  raise(as_others_hear(why, group_));
}

}  // namespace fleet
