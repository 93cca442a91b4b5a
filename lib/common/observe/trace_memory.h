// A trace of a rank: what it did during some steps. The rank writes it (trace_recorder.h) into
// memory that its launcher creates for the trace and reads concurrently: it is there even if the
// rank is stopped or gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/shared_memory.h"

namespace fleet {

// An activity of a rank. Times are CLOCK_MONOTONIC of the rank.
struct TraceRecord {
  int64_t begin_ns = 0, end_ns = 0;
  int64_t value = 0;   // what it is about: a step, a sample or a call's number
  uint32_t name = 0;   // in memory: 0 until the record is complete, then 1 + the name's number
  uint32_t track = 0;  // activities of one track follow or contain each other
};
static_assert(sizeof(TraceRecord) == 32);

// Names that each trace has: their numbers are the values.
enum class TraceName : uint32_t { kStep, kInputWait, kRead, kDecode, kAugment };
struct TraceNameDef {
  std::string_view category, name;
};
inline constexpr std::array<TraceNameDef, 5> kTraceNames = {{{"step", "step"},
                                                             {"input", "wait for input"},
                                                             {"input", "read"},
                                                             {"input", "decode"},
                                                             {"input", "augment"}}};

// The start of the memory. Then follow kTextBytes of lines that define names and tracks, and
// kRecords records. Pages that are not written take no memory.
//
//   name <TAB> NUMBER <TAB> CATEGORY <TAB> NAME <TAB> DETAIL <TAB> KEY     numbers rise from 0
//   track <TAB> NUMBER <TAB> NAME
//
// Activities of several ranks with the same KEY (not empty) and value are parts of one: the ranks'
// calls of a collective.
struct TraceMemory {
  enum State : int64_t { kRequested, kRecording, kDone };

  static constexpr uint64_t kMagic = 0x0031547465656c66;  // "fleetT1"
  static constexpr size_t kHeaderBytes = 4096, kTextBytes = size_t{1} << 20;
  static constexpr size_t kRecords = size_t{1} << 20;
  static constexpr size_t kBytes = kHeaderBytes + kTextBytes + kRecords * sizeof(TraceRecord);

  std::atomic<uint64_t> magic;
  std::atomic<int64_t> steps;  // to record, from the launcher
  std::atomic<int64_t> state;
  std::atomic<int64_t> pid;             // the writer's
  std::atomic<int64_t> time_namespace;  // the writer's: the number of /proc/self/ns/time
  std::atomic<int64_t> steps_done;
  std::atomic<uint64_t> text_bytes;
  std::atomic<uint64_t> records;  // wanted; beyond kRecords they are dropped

  char* text() { return reinterpret_cast<char*>(this) + kHeaderBytes; }
  TraceRecord* record(size_t i) { return reinterpret_cast<TraceRecord*>(text() + kTextBytes) + i; }
};
static_assert(sizeof(TraceMemory) <= TraceMemory::kHeaderBytes);

// Identifies this process's time namespace: clocks of two namespaces differ. 0: not known.
int64_t own_time_namespace();

// How far a reader is; the next read() continues there.
struct TracePosition {
  uint64_t text = 0, records = 0;
  bool operator==(const TracePosition&) const = default;
};

struct TracePart {
  std::string text;  // lines, as above
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

// The launcher's end: makes the memory and reads it. Not thread-safe.
class TraceReader {
 public:
  // steps: to record. kIo if there is no memory.
  explicit TraceReader(int64_t steps);

  // For processes of this user, valid while this object lives.
  int file() const { return memory_.file(); }
  std::string path() const { return memory_.path(); }
  TraceStatus status() const;
  // Complete records and text, at most `max_bytes` together. Do not trust the numbers in records:
  // any program can write them; only names are never 0.
  TracePart read(const TracePosition& from, size_t max_bytes) const;

 private:
  SharedMemory memory_;
};

}  // namespace fleet
