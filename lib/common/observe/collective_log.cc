#include "observe/collective_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/env.h"
#include "observe/collective_log_layout.h"

namespace fleet {

using namespace collective_log;

namespace {

// Whether the call with this number may be stored. Not if a thread that was interrupted is still
// storing an earlier call there, or was overtaken by a whole round of the slots: the call is left
// out then.
bool claim(uint64_t number, CallSlot* slot) {
  uint64_t seen = slot->status.load(std::memory_order_relaxed);
  while (seen == 0 || (seen % 4 != 0 && seen / 4 < number)) {
    if (!slot->status.compare_exchange_weak(seen, number * 4, std::memory_order_relaxed)) continue;
    std::atomic_thread_fence(std::memory_order_release);
    return true;
  }
  return false;
}

void store(const GroupData& data, GroupSlot* to) {
  const uint64_t turn = to->turn.load(std::memory_order_relaxed);
  to->turn.store(turn + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  to->data.store(data);
  to->turn.store(turn + 2, std::memory_order_release);
}

}  // namespace

namespace collective_log {

uint64_t pid_namespace() {
  struct stat found = {};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? static_cast<uint64_t>(found.st_ino) : 0;
}

std::optional<CollectiveRecord> load(const CallSlot& slot, uint64_t* number) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t before = slot.status.load(std::memory_order_acquire);
    if (before % 4 == 0) return std::nullopt;
    const CallData data = slot.data.load();
    CollectiveRecord call{.group = data.group,
                          .sequence = data.sequence,
                          .bytes = data.bytes,
                          .kind = static_cast<CollectiveKind>(data.kind),
                          .peer = data.peer,
                          .purpose = data.purpose,
                          .issued_ns = slot.issued_ns.load(std::memory_order_relaxed),
                          .started_ns = slot.started_ns.load(std::memory_order_relaxed),
                          .done_ns = slot.done_ns.load(std::memory_order_relaxed),
                          .state = static_cast<CollectiveState>(before % 4 - 1)};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.status.load(std::memory_order_relaxed) != before) continue;
    if (call.state < CollectiveState::kStarted) call.started_ns = 0;
    if (call.state < CollectiveState::kDone) call.done_ns = 0;
    *number = before / 4;
    return call;
  }
  return std::nullopt;
}

std::optional<CollectiveGroup> load(const GroupSlot& slot) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t turn = slot.turn.load(std::memory_order_acquire);
    const GroupData data = slot.data.load();
    // In this order: a rank that continues in between does not look as if it had skipped a call.
    const int64_t done = slot.done, started = slot.started, issued = slot.issued;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (turn % 2 != 0 || slot.turn.load(std::memory_order_relaxed) != turn) continue;
    if (data.id == 0) return std::nullopt;
    CollectiveGroup group{.id = data.id,
                          .name = std::string(data.name.view()),
                          .ranks = {},
                          .ordinal = data.ordinal,
                          .device = data.device != 0,
                          .closed = data.closed != 0,
                          .issued = issued,
                          .started = started,
                          .done = done};
    for (int run = 0; run < data.runs && run < static_cast<int>(kRuns); ++run) {
      for (int k = 0; k < data.run[run].count; ++k) {
        group.ranks.push_back(data.run[run].first + k * data.run[run].step);
      }
    }
    return group;
  }
  return std::nullopt;
}

}  // namespace collective_log

std::vector<RankRun> runs_of(const std::vector<int>& ranks) {
  std::vector<RankRun> runs;
  for (size_t i = 0; i < ranks.size();) {
    const int step = i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 1;
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == step) ++end;
    runs.push_back({ranks[i], step, static_cast<int32_t>(end - i)});
    i = end;
  }
  return runs;
}

std::string_view name_of(CollectiveKind kind) {
  constexpr std::string_view kNames[] = {"all_reduce",     "reduce", "broadcast", "all_gather",
                                         "reduce_scatter", "send",   "recv",      "barrier"};
  const auto i = static_cast<size_t>(kind);
  return i < std::size(kNames) ? kNames[i] : "collective";
}

CollectiveLog& CollectiveLog::of_process() {
  // Never destroyed: threads may still communicate while the process ends.
  static CollectiveLog* log = new CollectiveLog(env_or(kEnvCollectivesFile, ""));
  return *log;
}

CollectiveLog::CollectiveLog(const std::string& path)
    : memory_(SharedMemory::open(path, sizeof(Memory), kMagic)) {
  if (!memory_) memory_ = SharedMemory::unshared(sizeof(Memory));
  auto& memory = memory_.as<Memory>();
  memory.pid_namespace = pid_namespace();
  memory.pid = static_cast<uint64_t>(::getpid());
  for (CallSlot& slot : memory.calls) {  // a writer may have died while it stored
    if (slot.status % 4 == 0) slot.status = 0;
  }
}

int CollectiveLog::add_group(const std::string& name, const std::vector<int>& ranks, bool device) {
  const MutexLock lock(mutex_);
  // A free slot, else the one that was closed first.
  int found = -1;
  uint64_t oldest = 0;
  for (size_t i = 0; i < kGroups; ++i) {
    const GroupData data = memory_.as<Memory>().groups[i].data.load();
    if (data.id != 0 && !data.closed) continue;
    if (found >= 0 && data.id >= oldest) continue;
    found = static_cast<int>(i);
    oldest = data.id;
  }
  if (found < 0) return -1;
  GroupData data = {};
  data.id = next_id_++;
  data.name = FixedText<48>(name);
  data.ordinal = ordinals_[{std::string(data.name.view()), ranks}]++;
  data.device = device ? 1 : 0;
  const std::vector<RankRun> runs = runs_of(ranks);
  data.runs = static_cast<int32_t>(std::min(runs.size(), kRuns));
  std::copy_n(runs.begin(), data.runs, data.run);
  GroupSlot& slot = memory_.as<Memory>().groups[found];
  slot.issued = slot.started = slot.done = 0;
  store(data, &slot);
  return found;
}

void CollectiveLog::rename_group(int group, const std::string& name) {
  if (group < 0) return;
  const MutexLock lock(mutex_);
  GroupSlot& slot = memory_.as<Memory>().groups[group];
  GroupData data = slot.data.load();
  const FixedText<48> text(name);
  if (data.name == text) return;
  data.name = text;
  data.ordinal = ordinals_[{std::string(text.view()), load(slot)->ranks}]++;
  store(data, &slot);
}

void CollectiveLog::close_group(int group) {
  if (group < 0) return;
  const MutexLock lock(mutex_);
  GroupSlot& slot = memory_.as<Memory>().groups[group];
  GroupData data = slot.data.load();
  data.closed = 1;
  store(data, &slot);
}

CollectiveGroup CollectiveLog::group(int group) const {
  if (group < 0) return {};
  return load(memory_.as<Memory>().groups[group]).value_or(CollectiveGroup());
}

CollectiveGroup CollectiveLog::group_with_id(uint64_t id) const {
  for (const GroupSlot& slot : memory_.as<Memory>().groups) {
    if (const auto group = load(slot); group && group->id == id) return *group;
  }
  return {};
}

CollectiveTicket CollectiveLog::issue(int group, const CollectiveRecord& call) {
  constexpr auto relaxed = std::memory_order_relaxed;
  auto& memory = memory_.as<Memory>();
  const uint64_t number = memory.next.fetch_add(1, relaxed) + 1;
  CallSlot& slot = memory.calls[number % kCalls];
  GroupSlot* in = group >= 0 ? &memory.groups[group] : nullptr;
  if (claim(number, &slot)) {
    slot.data.store({.group = in ? in->data.words[0].load(relaxed) : 0,
                     .sequence = call.sequence,
                     .bytes = call.bytes,
                     .kind = static_cast<int32_t>(call.kind),
                     .peer = call.peer,
                     .purpose = call.purpose});
    slot.issued_ns.store(monotonic_ns(), relaxed);
    slot.status.store(number * 4 + 1, std::memory_order_release);
  }
  const bool message = call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
  if (in && !message) in->issued.store(call.sequence, relaxed);
  if (CollectiveListener* listener = listener_.load(std::memory_order_acquire)) {
    uint64_t same = 0;
    if (const auto seen = load(slot, &same); seen && same == number) listener->issued(*seen);
  }
  return {number, message ? 0 : call.sequence, group};
}

// If a later call has taken the slot, only the group's counter advances.
void CollectiveLog::advance(const CollectiveTicket& ticket, CollectiveState state) {
  constexpr auto relaxed = std::memory_order_relaxed;
  auto& memory = memory_.as<Memory>();
  const bool starts = state == CollectiveState::kStarted;
  if (ticket.group >= 0 && ticket.sequence > 0) {
    GroupSlot& group = memory.groups[ticket.group];
    (starts ? group.started : group.done).store(ticket.sequence, relaxed);
  }
  CallSlot& slot = memory.calls[ticket.number % kCalls];
  const uint64_t after = ticket.number * 4 + static_cast<uint64_t>(state) + 1;
  uint64_t before = after - 1;
  if (slot.status.load(relaxed) != before) return;
  (starts ? slot.started_ns : slot.done_ns).store(monotonic_ns(), relaxed);
  if (!slot.status.compare_exchange_strong(before, after, std::memory_order_release)) return;
  CollectiveListener* listener = listener_.load(std::memory_order_acquire);
  if (!listener) return;
  uint64_t same = 0;
  const auto seen = load(slot, &same);
  if (!seen || same != ticket.number) return;
  starts ? listener->started(*seen) : listener->done(*seen);
}

void CollectiveLog::start(const CollectiveTicket& ticket) {
  advance(ticket, CollectiveState::kStarted);
}

void CollectiveLog::finish(const CollectiveTicket& ticket) {
  advance(ticket, CollectiveState::kDone);
}

}  // namespace fleet
