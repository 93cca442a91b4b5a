// The progress of a guardian's ranks and servers: what they count themselves in shared memory, or
// report in words, once a second.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "node/guarded_rank.h"
#include "node/server_history.h"
#include "node/step_reports.h"
#include "transport/control_messages.h"

namespace fleet {

// Not thread-safe.
class ProgressCollector {
 public:
  // The ranks start (again).
  void begin(const wire::SpawnRanks& spawn);
  // Reads what programs have reported since the last call.
  void read_reports(std::vector<GuardedRank>& ranks);
  // The changes since the last call, for the launcher; marks them as sent in `ranks`. Also writes
  // the work of servers to its file.
  StepReport take_changes(std::vector<GuardedRank>& ranks);
  // The progress that a rank counts, or else has reported; nullopt: none yet. Sets `reported`
  // accordingly.
  std::optional<RankProgress> of(const GuardedRank& rank, bool* reported = nullptr) const;
  // Bytes that a rank has written to its log or in reports: a sign of life.
  int64_t output_bytes(const GuardedRank& rank) const;
  // Call it after read_reports(). `well`: with exit code 0.
  void on_rank_ended(const GuardedRank& rank, bool well);

 private:
  StepReports reports_;
  ServerHistory server_history_;
};

}  // namespace fleet
