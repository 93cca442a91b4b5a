// A trace of a job, as gathered from its nodes, and the file that it becomes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
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
  int index = 0;  // in NodeTrace.ranks
  std::map<uint32_t, ActivityName> names;
  std::map<uint32_t, std::string> tracks;
  std::vector<TraceRecord> records;
  std::string text;         // names and tracks are read from it: an incomplete last line
  uint64_t text_bytes = 0;  // taken in

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

struct TraceProgress {
  int ranks = 0;  // that record
  int done = 0;   // finished
  int64_t min_steps = 0;
};

// Gathers a trace from the nodes of a job, piece by piece, while the ranks record it.
class TraceCollection {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Sends a request to the job and waits for the answers; throws kNotFound once the job has ended.
  using Ask = std::function<TraceReport(const TraceRequest&)>;

  TraceCollection(std::string job_id, Ask ask) : ask_(std::move(ask)) {
    trace_.job_id = std::move(job_id);
  }

  // Asks all ranks to record. Throws what Ask throws.
  void begin(int steps);
  // Takes in what there is by now. Returns whether more may come: a rank records, or has been asked
  // and lives. If the job ends, keeps the data so far.
  bool poll();
  TraceProgress progress() const;
  // Ends the trace in the job. Takes out ranks whose times mean nothing here.
  void finish();

  const JobTrace& trace() const { return trace_; }
  // After finish(): the missing parts and the reasons, a line each. Empty: it is complete.
  const std::vector<std::string>& missing() const { return missing_; }
  bool job_ended() const { return ended_.has_value(); }

 private:
  std::optional<TraceReport> ask(const TraceRequest& request);
  void take_status(const TraceReport& report, bool begins);
  void read(RankTrace* rank);
  bool awaited(const RankTrace& rank) const;
  std::string name_of(const RankTrace& rank) const;
  void refuse_uncalibrated();
  void note_incomplete();

  const Ask ask_;
  int64_t steps_ = 0;
  JobTrace trace_;
  std::vector<int> silent_;     // nodes, at the start
  std::optional<Error> ended_;  // why the job no longer answers
  std::vector<std::string> missing_;
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
