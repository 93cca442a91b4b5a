#include "observe/collective_log_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "observe/collective_log_layout.h"

namespace fleet {

using collective_log::CallSlot;
using collective_log::GroupSlot;

CollectiveLogReader::CollectiveLogReader() : file_(::memfd_create("fleet-calls", MFD_CLOEXEC)) {
  if (!file_ || ::ftruncate(file_.get(), sizeof(collective_log::Memory)) != 0) {
    throw_errno("cannot create the in-memory file of a rank's collectives");
  }
  void* memory = ::mmap(nullptr, sizeof(collective_log::Memory), PROT_READ | PROT_WRITE, MAP_SHARED,
                        file_.get(), 0);
  if (memory == MAP_FAILED) throw_errno("cannot map the file of a rank's collectives");
  memory_ = memory;
  static_cast<collective_log::Memory*>(memory_)->magic = collective_log::kMagic;
  path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
}

CollectiveLogReader::~CollectiveLogReader() { ::munmap(memory_, sizeof(collective_log::Memory)); }

CollectiveSnapshot CollectiveLogReader::read() const {
  const auto& memory = *static_cast<const collective_log::Memory*>(memory_);
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
