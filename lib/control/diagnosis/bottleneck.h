// Names what slows the steps of a job down: waiting for input, communication, a straggler,
// parameter servers, or too little CPU time on the hosts; and what to do about it. From the ranks'
// own reports. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "diagnosis/server_times.h"
#include "transport/control_messages.h"

namespace fleet {

// What one rank did over a period, in nanoseconds a step.
struct RankTimes {
  int rank = 0, local_rank = 0, node_rank = 0;
  double step = 0, input = 0;
  std::optional<double> exposed;  // waiting for collectives; unset: the device hides it
  double exchange = 0;            // of exposed: what every step waits
  double delayed = 0;             // without a core
  bool throttled = false;         // by the quota of its cgroup
  double making = 0;              // work of its data threads
  double reading = 0;             // of this: reading
  int data_threads = 0, nice = 0;
  bool reported = false;  // by another program than our engine
  double cpu = 0;         // CPU time of all its threads
  double cores = 0;       // its share of those it may run on
  double quota = 0;       // cores; 0: none
  // The part of the busy time of its cores that processes other than the job's ranks use; unset:
  // unknown.
  std::optional<double> others = {};
  std::string slow_gpu;              // why the clock of its GPU is lowered; "": it is not
  std::vector<double> answers = {};  // by server, of a rank that uses some: ServerTimes::answer

  double own() const { return step - exposed.value_or(0); }
};

// "input", "communication", "straggler", "host", "server"
const char* name_of(wire::Cause::Kind kind);

// Divides the step among its causes: a step consists of what its ranks compute and of what they
// lose. Nothing is named unless it explains most of the loss: a wrong cause costs more than none.
// `ranks`: those that were measured over the same period. nullopt if there are none. `nnodes`: of
// the job. servers: its parameter servers, over the same period; `answer` comes from the ranks.
std::optional<wire::Bottleneck> find_bottleneck(const std::vector<RankTimes>& ranks, int nnodes,
                                                std::vector<ServerTimes> servers = {});

// Of nvmlClocksEventReasons, for which NVIDIA's driver lowers the clock of a GPU, those that slow
// work down: not "idle", and no clock that somebody set.
uint64_t slowing_reasons(uint64_t reasons);
// "power", "heat", "brake" or several of them, as in "power+heat"; "" if none slows it down.
std::string throttle_text(uint64_t reasons);

// Collects reports, and says once a minute what they amount to.
class BottleneckAnalyzer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kPeriod{60};

  void begin(int nnodes, Time now);  // the ranks start (again)
  // `reports`: of one node, with node_rank. Returns a line for the user if a minute is over and
  // something slows the job down.
  std::optional<std::string> update(const StepReport& reports, Time now);
  // Over the last one or two minutes; nullopt if that is not known yet.
  std::optional<wire::Bottleneck> recent() const;
  std::optional<wire::Bottleneck> overall() const;  // since begin()

 private:
  struct Point {
    RankSteps steps;
    RankUsage usage;
  };
  struct Rank {
    std::optional<RankUsage> usage;               // the last one
    std::optional<RankSteps> steps;               // the last one
    std::optional<Point> first, before, current;  // at begin, and of the last two periods
  };
  std::optional<RankTimes> times(const Rank& rank, const Point& from) const;
  std::optional<wire::Bottleneck> since(std::optional<Point> Rank::*from,
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
