#include <algorithm>

#include "observe/trace_memory.h"

namespace fleet {

TraceReader::TraceReader(int64_t steps)
    : memory_(SharedMemory::create("trace", TraceMemory::kBytes, TraceMemory::kMagic)) {
  memory_.as<TraceMemory>().steps = steps;
}

TraceStatus TraceReader::status() const {
  const auto& memory = memory_.as<TraceMemory>();
  const uint64_t records = memory.records;
  return {.state = static_cast<TraceMemory::State>(memory.state.load()),
          .pid = memory.pid,
          .time_namespace = memory.time_namespace,
          .steps_done = memory.steps_done,
          .end = {.text = std::min<uint64_t>(memory.text_bytes, TraceMemory::kTextBytes),
                  .records = std::min<uint64_t>(records, TraceMemory::kRecords)},
          .dropped = records > TraceMemory::kRecords ? records - TraceMemory::kRecords : 0};
}

TracePart TraceReader::read(const TracePosition& from, size_t max_bytes) const {
  auto& memory = memory_.as<TraceMemory>();
  // Records first: a record's name was written before it.
  TracePart part{.next = from};
  const TracePosition end = status().end;
  const size_t room = max_bytes / 2;
  const uint64_t stop = std::min(end.records, from.records + room / sizeof(TraceRecord));
  for (uint64_t i = from.records; i < stop; ++i) {
    TraceRecord& there = *memory.record(i);
    const uint32_t name = std::atomic_ref(there.name).load(std::memory_order_acquire);
    if (name == 0) break;
    TraceRecord record = there;
    record.name = name - 1;
    part.records.push_back(record);
  }
  part.next.records = from.records + part.records.size();
  const uint64_t text = std::min<uint64_t>(memory.text_bytes.load(std::memory_order_acquire),
                                           TraceMemory::kTextBytes);
  if (from.text < text) {
    part.text.assign(memory.text() + from.text, std::min<uint64_t>(text - from.text, room));
    part.next.text = from.text + part.text.size();
  }
  return part;
}

}  // namespace fleet
