// Names what slows the steps of a job down: waiting for input, communication, a straggler,
// parameter servers, or too little CPU time on the hosts; and what to do about it. From the ranks'
// own reports. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "diagnosis/rank_times.h"
#include "diagnosis/server_times.h"
#include "transport/control_messages.h"

namespace fleet {

// "input", "communication", "straggler", "host", "server"
const char* name_of(wire::Cause::Kind kind);

// Divides the step among its causes: in a step, ranks compute, and they lose time. Names a cause
// only if it explains most of the loss: a wrong cause costs more than none. `ranks`: all measured
// over the same period. nullopt if `ranks` is empty. nnodes: the number in the job. servers: its
// parameter servers, over the same period; `answer` comes from the ranks.
std::optional<wire::Bottleneck> find_bottleneck(const std::vector<RankTimes>& ranks, int nnodes,
                                                std::vector<ServerTimes> servers = {});

// Collects reports, and names the bottleneck once a minute.
class BottleneckAnalyzer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kPeriod{60};

  void begin(int nnodes, Time now);  // the ranks start (again)
  // `reports`: one node's, with node_rank. Returns a line for the user if a minute has passed and
  // something slows the job down.
  std::optional<std::string> update(const StepReport& reports, Time now);
  // Over the last one or two minutes; nullopt if that is not known yet.
  std::optional<wire::Bottleneck> recent() const;
  std::optional<wire::Bottleneck> overall() const;  // since begin()

 private:
  struct Rank {
    std::optional<RankUsage> usage;                   // the last one
    std::optional<RankSteps> steps;                   // the last one
    std::optional<RankPoint> first, before, current;  // at begin, and of the last two periods
  };
  std::optional<wire::Bottleneck> since(std::optional<RankPoint> Rank::*from,
                                        ServerReports::Period period) const;

  int nnodes_ = 1;
  Time period_end_{};
  std::map<int, Rank> ranks_;  // trainers, by rank
  ServerReports servers_;
};

// For programs, as verdict.json and `fleetrun top --format=json` have it.
// {"line": "bottleneck: ...", "compute": 0.6, "causes": [{"kind": "input", "share": 0.31, "rank":
// null, "action": "..."}]}; a cause with one slow server has its number too: "server"
Json bottleneck_json(const wire::Bottleneck& bottleneck);

}  // namespace fleet
