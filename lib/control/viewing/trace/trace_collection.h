// Gathers a trace from the nodes of a job, piece by piece, while the ranks record it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "viewing/trace/job_trace.h"

namespace fleet {

struct TraceProgress {
  int ranks = 0;  // that record
  int done = 0;   // of these
  int64_t min_steps = 0;
};

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
  // After finish(): what is missing in the trace, and why, a line each. Empty: it is complete.
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
  struct Reading {
    int index = 0;  // in NodeTrace.ranks
    uint64_t text = 0, records = 0;
  };
  std::vector<Reading> reading_;  // by rank of trace_
  std::vector<int> silent_;       // nodes, at the start
  std::optional<Error> ended_;    // why the job no longer answers
  std::vector<std::string> missing_;
};

}  // namespace fleet
