// Keeps what a program reports of its steps in metrics.jsonl of the log folder, in the form of
// fleet-worker's (docs/reference/metrics.md), for `fleetrun report` and `fleetrun compare`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "node/reported_steps.h"
#include "observe/event_file.h"

namespace fleet {

// The history of one node. Its curves show the first rank that reports. Creates nothing before a
// report. A file that cannot be written is one warning, and is tried again. Not thread-safe.
class StepHistory {
 public:
  // A moment on two clocks.
  struct Moment {
    int64_t ns = 0;   // CLOCK_MONOTONIC
    double unix = 0;  // seconds since 1970
    double at(int64_t other_ns) const { return unix - 1e-9 * static_cast<double>(ns - other_ns); }
  };

  // The ranks start (again). path: of metrics.jsonl; "": it is not kept. At the first report since
  // this object was made, the file of an earlier job is renamed to metrics.jsonl.1, .2 and so on,
  // or with `overwrite` removed.
  void begin(const std::string& path, int world_size, bool overwrite, Moment now);
  // `after`: the rank's progress with this report.
  void add(int rank, const ReportedStep& report, const RankProgress& after, int64_t at_ns,
           Moment now);
  // The state of all ranks that report, by rank. Call it now and then.
  void add_ranks(const std::map<int, RankProgress>& ranks, Moment now);
  // `well`: with exit code 0.
  void on_rank_ended(int rank, bool well, Moment now);
  // Writes the events since the last call. Call it about once a second, and at the end.
  void flush();

 private:
  void add_start(const ReportedStep& report, double time);
  void write(const EventLine& line, double time);

  std::string path_, lines_;
  int world_size_ = 0;
  bool overwrite_ = false, opened_ = false, failed_ = false;
  Moment began_;
  // State of this generation:
  std::optional<int> rank_;            // whose reports are kept
  RankProgress last_;                  // its progress in the previous line
  std::map<int, RankProgress> ranks_;  // in the last line of all ranks
  int64_t ranks_at_ns_ = 0;
};

}  // namespace fleet
