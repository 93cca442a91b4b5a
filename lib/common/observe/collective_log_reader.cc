#include "observe/collective_log_reader.h"

#include <algorithm>
#include <utility>

#include "observe/collective_log_layout.h"

namespace fleet {

using collective_log::CallSlot;
using collective_log::GroupSlot;

CollectiveLogReader::CollectiveLogReader()
    : memory_(SharedMemory::create("collectives", sizeof(collective_log::Memory),
                                   collective_log::kMagic)) {}

CollectiveSnapshot CollectiveLogReader::read() const {
  const auto& memory = memory_.as<collective_log::Memory>();
  CollectiveSnapshot snapshot;
  snapshot.pid = static_cast<pid_t>(memory.pid.load());
  if (snapshot.pid == 0) return snapshot;
  const uint64_t own = collective_log::pid_namespace();
  snapshot.same_pid_names = own != 0 && memory.pid_namespace == own;
  // Groups first: a call that is done in its group's counters is then done in its own slot too.
  for (const GroupSlot& slot : memory.groups) {
    if (auto group = load(slot)) snapshot.groups.push_back(*std::move(group));
  }
  std::vector<std::pair<uint64_t, CollectiveRecord>> calls;
  for (const CallSlot& slot : memory.calls) {
    uint64_t number = 0;
    if (const auto call = load(slot, &number)) calls.emplace_back(number, *call);
  }
  std::sort(calls.begin(), calls.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [number, call] : calls) snapshot.calls.push_back(call);
  return snapshot;
}

}  // namespace fleet
