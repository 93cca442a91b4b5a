#include "observe/trace_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace fleet {

TraceReader::TraceReader(int64_t steps) : file_(::memfd_create("fleet-trace", MFD_CLOEXEC)) {
  if (!file_ || ::ftruncate(file_.get(), TraceMemory::kBytes) != 0) {
    throw_errno("cannot create the in-memory file of a rank's trace");
  }
  void* memory =
      ::mmap(nullptr, TraceMemory::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) throw_errno("cannot map the file of a rank's trace");
  memory_ = static_cast<TraceMemory*>(memory);
  memory_->steps = steps;
  memory_->magic = TraceMemory::kMagic;
}

TraceReader::~TraceReader() {
  if (memory_) ::munmap(memory_, TraceMemory::kBytes);
}

std::string TraceReader::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
}

TraceStatus TraceReader::status() const {
  const uint64_t records = memory_->records;
  return {.state = static_cast<TraceMemory::State>(memory_->state.load()),
          .pid = memory_->pid,
          .time_namespace = memory_->time_namespace,
          .steps_done = memory_->steps_done,
          .end = {.text = std::min<uint64_t>(memory_->text_bytes, TraceMemory::kTextBytes),
                  .records = std::min<uint64_t>(records, TraceMemory::kRecords)},
          .dropped = records > TraceMemory::kRecords ? records - TraceMemory::kRecords : 0};
}

TracePart TraceReader::read(const TracePosition& from, size_t max_bytes) const {
  // Records first: a record's name was written before it.
  TracePart part{.next = from};
  const TracePosition end = status().end;
  const size_t room = max_bytes / 2;
  const uint64_t stop = std::min(end.records, from.records + room / sizeof(TraceRecord));
  for (uint64_t i = from.records; i < stop; ++i) {
    TraceRecord& there = *memory_->record(i);
    const uint32_t name = std::atomic_ref(there.name).load(std::memory_order_acquire);
    if (name == 0) break;
    TraceRecord record = there;
    record.name = name - 1;
    part.records.push_back(record);
  }
  part.next.records = from.records + part.records.size();
  const uint64_t text = std::min<uint64_t>(memory_->text_bytes.load(std::memory_order_acquire),
                                           TraceMemory::kTextBytes);
  if (from.text < text) {
    part.text.assign(memory_->text() + from.text, std::min<uint64_t>(text - from.text, room));
    part.next.text = from.text + part.text.size();
  }
  return part;
}

}  // namespace fleet
