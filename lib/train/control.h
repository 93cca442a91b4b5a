// What ranks tell each other beside the gradients: whether to stop or to save, and sums of metrics.
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

// Over a communicator of its own, so that its calls never mix with those of a step. All ranks call
// it alike.
class Control {
 public:
  // communicator: of the whole job and of the host's memory; null in a job of one rank.
  explicit Control(Communicator* communicator);
  ~Control();

  // What a signal asked a rank for.
  struct Request {
    int stop = 0;       // the signal that asks to stop; 0: none
    bool save = false;  // a checkpoint
    bool end = false;   // no signal: this rank cannot go on
  };
  // Before each step, and once where there is none left (works: false). Tells the others this and
  // what this rank is asked for. Returns what any rank was asked for in the call before, or in this
  // one where it is the last: hence the same on all ranks before the same step, without waiting for
  // the slowest of this one. A stop and an end are repeated; a save is returned once for each call
  // that asked. Where some ranks have a step left and others do not, whoever notices throws kUsage
  // on those in the minority (on all where there is none), else kPeerLost; both name the rank.
  // step: counted from 0, for that message.
  struct Turn {
    int64_t step = 0;
    bool works = true;
  };
  Request next_turn(const Turn& turn, const Request& own);
  // Once a step, for loops that always have another: next_turn() without its checks.
  bool agree_to_stop(bool wish) { return next_turn({}, {wish ? SIGTERM : 0}).stop != 0; }
  // To be called where a step failed because another rank was lost: throws as next_turn() does
  // where that rank had no step left.
  void explain_lost_peer();
  // Sums over all ranks, in place.
  void sum(std::span<double> values);
  // The values of each rank, by rank; as many on all of them.
  std::vector<std::vector<double>> by_rank(std::span<const double> values);
  // Waits until all ranks are here.
  void barrier();
  // Runs `action` on this rank, waits for the others, and returns what it returned on each, by
  // rank. Where it threw on any of them this throws on all: there what it threw, on the others
  // kPeerLost naming the first such rank and `what`, as in "finish a checkpoint".
  std::vector<double> all_succeed(const std::string& what, const std::function<double()>& action);

 private:
  std::unique_ptr<Communicator> communicator_;
  HostEvent exchanged_;
  HostStream stream_;  // behind the event: it ends first, with what it still has to record
  // Summed over the ranks.
  struct Message {
    double working = 0, working_ranks = 0;  // ranks with a step left, and the sum of their numbers
    double saves = 0, ends = 0;
    std::array<double, 4> stops = {};  // by signal
  };
  void check_turns() const;
  Request requested() const;

  bool posted_ = false;
  Turn turn_;            // the last one told
  Message told_, sums_;  // of this rank; over all
};

}  // namespace fleet
