// A trace of a job, as gathered from its nodes, and the file that it becomes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/trace_memory.h"
#include "rendezvous/types.h"

namespace fleet {

struct ActivityName {
  std::string category, name, detail;
  std::string key;  // see observe/trace_memory.h
};

// Times of one rank or node on the host's clock: own + offset, within error.
struct TraceClock {
  int64_t offset_ns = 0, error_ns = 0;
};

// A rank. Times follow its node's clock until the file is written.
struct RankTrace {
  TracedRank rank;
  int node_rank = 0;
  std::map<uint32_t, ActivityName> names;
  std::map<uint32_t, std::string> tracks;
  std::vector<TraceRecord> records;
  std::string text;  // of which names and tracks are read: an incomplete last line

  // Takes a piece in; what it cannot read it leaves out.
  void add(const wire::TracePiece& piece);
};

struct TracedNode {
  int node_rank = 0;
  std::string hostname;
  bool calibrated = false;
  TraceClock clock;
  std::vector<LauncherEvent> events;  // before the trace
  std::vector<LauncherEvent> later;   // since
  std::vector<wire::RealtimeOffset> realtime;
};

struct JobTrace {
  std::string job_id;
  std::map<int, TracedNode> nodes;  // by node rank
  std::vector<RankTrace> ranks;
};

// Writes the trace in Perfetto's format (proto/perfetto_trace.proto), which ui.perfetto.dev opens,
// in pieces to `write`. Ranks whose node is not calibrated, or that are refused, must not be in the
// trace.
//
// Each rank is a process whose labels say how exact its times are; a process "launcher, node N" has
// what the launchers saw that belongs to no rank. Events that are much older than the rest are
// annotations of an instant at the beginning, so that the first view is not empty.
void write_perfetto(const JobTrace& trace, const std::function<void(std::string_view)>& write);

// A trace of another profiler in Chrome's JSON format, as torch.profiler (Kineto) and Paddle's
// profiler export it; given as FILE or RANK=FILE.
struct MergedFile {
  std::optional<int> rank;
  std::string path;
};
MergedFile merged_file(const std::string& given);

// Adds the activities in `json` to the rank that it belongs to: `rank`, or else the rank that the
// file names ("distributedInfo"), or the one whose process it is. Its times (microseconds after
// "baseTimeNanoseconds", of CLOCK_REALTIME) are put on the clock of the rank's node. Returns the
// number of activities. kUsage, naming the file, if it is no such trace or its rank is not known.
size_t merge_chrome_trace(const std::string& json, const MergedFile& file, JobTrace* trace);

}  // namespace fleet
