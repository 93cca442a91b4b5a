// The steps that the programs of a node report, on standard output or in files: read once a second,
// for the guardian.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/reported_steps.h"
#include "node/step_file.h"
#include "node/step_history.h"
#include "node/step_lines.h"
#include "transport/control_messages.h"

namespace fleet {

// Ranks without RankCommand.steps_file, such as parameter servers, report nothing. Not thread-safe.
class StepReports {
 public:
  using Moment = StepHistory::Moment;

  // The ranks start (again). Removes files of an earlier start.
  void begin(const wire::SpawnRanks& spawn, Moment now);
  // Takes in what a rank has reported: `printed`, and what is new in its file. The first wrong
  // report of a job is a warning. `ended`: the rank has; it reports nothing after that.
  void update(const wire::RankCommand& rank, const std::vector<StepText>& printed, bool ended,
              Moment now);
  // After the updates of all ranks.
  void flush(Moment now);
  // `well`: with exit code 0.
  void on_rank_ended(const wire::RankCommand& rank, bool well, Moment now);
  // nullopt: it has reported nothing.
  std::optional<RankProgress> of(const wire::RankCommand& rank) const;
  // Read from its file: a sign of life.
  int64_t bytes(const wire::RankCommand& rank) const;

  static Moment now();

 private:
  struct Rank {
    StepFile file;
    ReportedSteps steps;
    bool ended = false;
  };
  void add(const wire::RankCommand& rank, Rank* of, const StepText& text, const char* where,
           Moment now);

  std::map<int, Rank> ranks_;  // by local rank
  StepHistory history_;
  std::map<int, RankProgress> by_rank_;  // by global rank
  bool warned_ = false;
};

}  // namespace fleet
