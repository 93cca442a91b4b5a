// The memory of a collective log, as its two ends see it. Not for others.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "observe/collective_log.h"
#include "observe/shared_memory.h"

namespace fleet::collective_log {

// "fleetC1": a file with other content is left alone.
constexpr uint64_t kMagic = 0x0031437465656c66;
constexpr size_t kCalls = 512, kGroups = 64, kRuns = 16;

// The constant part of a call.
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
  AtomicWords<CallData> data;
};
static_assert(sizeof(CallSlot) == 128);

struct GroupData {
  uint64_t id;  // 0: the slot is free
  FixedText<48> name;
  int32_t ordinal, device, closed, runs;
  RankRun run[kRuns];  // the ranks of a group that needs more are cut
};
// `turn` is odd while `data` is being stored.
struct alignas(64) GroupSlot {
  std::atomic<uint64_t> turn;
  std::atomic<int64_t> issued, started, done;
  AtomicWords<GroupData> data;
};

struct Memory {
  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> pid;            // the writer's
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
