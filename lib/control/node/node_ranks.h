// The ranks of this node in one generation of the job. The guardian knows them by local_rank only:
// NodeRanks adds to its reports what the job knows. Pure: the time is an argument.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {

// Not thread-safe. Local ranks must be those of `commands`.
class NodeRanks {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // commands: by local rank. started: when the ranks start.
  NodeRanks(Assignment assignment, const wire::SpawnRanks& commands, Time started);

  const World& world() const { return *assignment_.world; }
  int node_rank() const { return assignment_.node_rank; }
  int generation() const { return assignment_.generation(); }
  bool has_servers() const { return assignment_.node().servers() > 0; }
  int running_trainers() const { return trainers_; }
  std::string name(int local_rank) const;  // "rank 3", "server 0"

  // A rank has ended with 0. Returns whether it was the last running trainer.
  bool on_success(RankExit exit, Time now);

  // Fill in ranks, servers and log paths. The end of a rank also gets its duration, and a hint if
  // nothing explains its signal.
  void complete(RankExit* exit, Time now) const;
  void complete(RankStall* stall) const;
  // Leaves out progress that is not of the kind of its process.
  StepReport completed(StepReport report) const;
  // Adds the ranks that have ended with 0. Drops descriptions of calls if there are too many.
  Stacks completed(Stacks stacks, Time now) const;

 private:
  struct Ended {
    int local_rank;
    Time at;
    std::string tail;
  };
  int rank(int local_rank) const { return rank_of(assignment_.node(), local_rank); }
  bool server(int local_rank) const { return is_server(assignment_.node(), local_rank); }
  const std::string& log_path(int local_rank) const;

  Assignment assignment_;
  std::vector<std::string> log_paths_;  // by local rank
  std::vector<bool> shown_;             // by local rank: both streams go to the console
  Time started_;
  int trainers_;  // running ones
  std::vector<Ended> ended_well_;
};

}  // namespace fleet
