// What ranks tell each other beside the gradients: whether to stop, and sums of metrics.
#pragma once

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

  // Once a step. Tells the others whether this rank wishes to stop; true once any rank wished so in
  // the call before: hence on all ranks in the same step, without waiting for the slowest of this
  // one.
  bool agree_to_stop(bool wish);
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
  bool posted_ = false;
  float wish_ = 0;
};

}  // namespace fleet
