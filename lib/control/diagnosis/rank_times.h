// Where the time of a rank's steps goes, measured between two of its reports. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {

// The time of one rank over a period, in nanoseconds a step.
struct RankTimes {
  int rank = 0, local_rank = 0, node_rank = 0;
  double step = 0, input = 0;
  std::optional<double> exposed;  // waiting for collectives; unset: the device hides it
  double exchange = 0;            // the part of exposed that every step waits
  double delayed = 0;             // without a core
  bool throttled = false;         // by the quota of its cgroup
  double making = 0;              // work of its data threads
  double reading = 0;             // the part of it that reads
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
  // Whether its data threads mostly read.
  bool mostly_reads() const;
  // Whether its cores are used by the job's own threads alone.
  bool has_its_cores() const;
};

// A rank's reports at some moment.
struct RankPoint {
  RankSteps steps;
  RankUsage usage;
};
// nullopt: fewer than 5 steps, or less than 5 s, lie between the two.
std::optional<RankTimes> rank_times(const RankPoint& from, const RankPoint& to);

}  // namespace fleet
