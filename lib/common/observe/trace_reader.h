// The launcher's end of a rank's trace (trace_memory.h): makes the memory and reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "observe/trace_memory.h"

namespace fleet {

// How far a reader is; the next read() continues there.
struct TracePosition {
  uint64_t text = 0, records = 0;
  bool operator==(const TracePosition&) const = default;
};

struct TracePart {
  std::string text;  // lines of trace_memory.h
  std::vector<TraceRecord> records;
  TracePosition next;
};

struct TraceStatus {
  TraceMemory::State state = TraceMemory::kRequested;
  int64_t pid = 0;  // 0: the rank has not seen the request
  int64_t time_namespace = 0;
  int64_t steps_done = 0;
  TracePosition end;     // what there is to read so far
  uint64_t dropped = 0;  // records that did not fit
};

// Not thread-safe.
class TraceReader {
 public:
  // steps: to record. kIo if there is no memory.
  explicit TraceReader(int64_t steps);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;

  // For processes of this user, valid while this object lives.
  int file() const { return file_.get(); }
  std::string path() const;
  TraceStatus status() const;
  // Complete records and text, at most `max_bytes` together. Do not trust the numbers in records:
  // any program can write them; only names are never 0.
  TracePart read(const TracePosition& from, size_t max_bytes) const;

 private:
  UniqueFd file_;
  TraceMemory* memory_ = nullptr;
};

}  // namespace fleet
