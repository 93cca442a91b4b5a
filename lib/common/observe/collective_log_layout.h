// The memory of a collective log, as its two ends see it. Not for others.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "observe/collective_log.h"

namespace fleet::collective_log {

// "fleetC1": a file with other content is left alone.
constexpr uint64_t kMagic = 0x0031437465656c66;
constexpr size_t kCalls = 512, kGroups = 64, kRuns = 16;

// Words that one process stores and another loads: only lock-free atomics.
template <typename T>
struct Words {
  static_assert(sizeof(T) % sizeof(uint64_t) == 0 && std::is_trivially_copyable_v<T>);
  using Array = std::array<uint64_t, sizeof(T) / sizeof(uint64_t)>;
  std::atomic<uint64_t> words[sizeof(T) / sizeof(uint64_t)];

  void store(const T& value) {
    const auto all = std::bit_cast<Array>(value);
    for (size_t i = 0; i < all.size(); ++i) words[i].store(all[i], std::memory_order_relaxed);
  }
  T load() const {
    Array all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = words[i].load(std::memory_order_relaxed);
    return std::bit_cast<T>(all);
  }
};

// What does not change after the call was issued.
struct CallData {
  uint64_t group;
  int64_t sequence, bytes;
  int32_t kind, peer;
  CollectivePurpose purpose;
};

// `status` is the call's number (from 1) times 4, plus 0 while `data` is being stored, 1 issued, 2
// started, 3 done.
struct alignas(64) CallSlot {
  std::atomic<uint64_t> status;
  std::atomic<int64_t> issued_ns, started_ns, done_ns;
  Words<CallData> data;
};
static_assert(sizeof(CallSlot) == 128);

// Ranks first, first + step, ...; `count` of them.
struct Run {
  int32_t first, step, count, unused;
};
struct GroupData {
  uint64_t id;  // 0: the slot is free
  FixedText<48> name;
  int32_t ordinal, device, closed, runs;
  Run run[kRuns];  // the ranks of a group that needs more are cut
};
// `turn` is odd while `data` is being stored.
struct alignas(64) GroupSlot {
  std::atomic<uint64_t> turn;
  std::atomic<int64_t> issued, started, done;
  Words<GroupData> data;
};

struct Memory {
  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> pid;            // of the writer
  std::atomic<uint64_t> pid_namespace;  // its inode
  std::atomic<uint64_t> next;           // the number of the last issued call
  GroupSlot groups[kGroups];
  CallSlot calls[kCalls];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

// nullopt if it was being stored, or replaced while it was read.
std::optional<CollectiveRecord> load(const CallSlot& slot, uint64_t* number);
// nullopt if it is free or was being stored.
std::optional<CollectiveGroup> load(const GroupSlot& slot);
uint64_t pid_namespace();  // 0: unknown

}  // namespace fleet::collective_log
