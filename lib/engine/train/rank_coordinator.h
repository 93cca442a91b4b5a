// Messages between ranks besides the gradients: stop and save requests, and sums of metrics.
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tensor/host.h"

namespace fleet {

// Uses its own communicator, so that its calls never mix with those of a step. All ranks make the
// same calls.
class RankCoordinator {
 public:
  // Whether ranks wait for an action of all_succeed() until the communicator's timeout, or as long
  // as the other ranks live.
  enum class Actions { kTimeout, kUnlimited };
  // communicator: for the whole job and host memory; null in a job of one rank.
  explicit RankCoordinator(Communicator* communicator, Actions actions = Actions::kTimeout);
  ~RankCoordinator();

  // A request that a signal made to a rank.
  struct Request {
    int stop = 0;        // the stop signal; 0: none
    bool save = false;   // a checkpoint is wanted
    bool end = false;    // without a signal: this rank cannot continue
    bool trace = false;  // the next step is recorded
  };
  // Call before each step, and once when none is left (works: false). Sends this and the rank's own
  // request to the other ranks. Returns the requests of all ranks from the previous call, or from
  // this call if it is the last: so all ranks get the same answer before the same step, without
  // waiting for the slowest rank in this one. A stop or an end is repeated; a save or a trace is
  // returned once per call that asked for it. If some ranks have a step left and others do not,
  // each rank that notices throws: kUsage in the minority (on all ranks in a tie), else
  // kPeerLost; both name the rank. step: counted from 0, for that message.
  struct StepStatus {
    int64_t step = 0;
    bool works = true;
  };
  Request agree_on_step(const StepStatus& status, const Request& own);
  // Call once per step in loops that always have a next step: agree_on_step() without its checks.
  bool agree_to_stop(bool wish) { return agree_on_step({}, {wish ? SIGTERM : 0}).stop != 0; }
  // Call when a step failed because another rank was lost: throws the same error as agree_on_step()
  // if that rank had no step left.
  void explain_lost_peer();
  // Sums over all ranks, in place.
  void sum(std::span<double> values);
  // The values of each rank, by rank; all ranks pass the same number of values.
  std::vector<std::vector<double>> by_rank(std::span<const double> values);
  // Waits until all ranks are here.
  void barrier();
  // Runs `action` on this rank, waits for the other ranks, and returns the results by rank. If it
  // threw on any rank, this throws on all ranks: the original exception there, on the others
  // kPeerLost naming the first such rank and `what`, as in "finish a checkpoint". The action must
  // not use this object.
  std::vector<double> all_succeed(const std::string& what, const std::function<double()>& action);

 private:
  const Actions actions_;
  std::unique_ptr<Communicator> communicator_;
  HostEvent exchanged_;
  HostStream stream_;  // declared after the event, so destroyed first: it may still have to record
                       // the event
  // Summed over the ranks.
  struct Message {
    double working = 0,
           working_ranks = 0;  // ranks with a step left, and the sum of their rank numbers
    double saves = 0, ends = 0, traces = 0;
    std::array<double, 4> stops = {};  // by signal
  };
  class Meetings;
  void check_step_counts() const;
  Request requested() const;

  bool posted_ = false;
  StepStatus status_;    // the last one sent
  Message sent_, sums_;  // this rank's; summed over all ranks
};

}  // namespace fleet
