// A trace of a job, as gathered from its nodes: what is written to a file (perfetto_trace.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
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

// A rank. Times are those of its node until the file is written.
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

}  // namespace fleet
