// What ranks must have alike before they train, compared through the Store in one exchange.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "data/fingerprint.h"
#include "store/store.h"
#include "train/job.h"
#include "train/rank_state.h"

namespace fleet {

// One thing that all ranks must have alike.
struct Claim {
  std::string key;     // "data.batch_size"
  std::string value;   // one line
  std::string origin;  // "job.json", "--set"; not compared. "": nothing is said
};

// This build of fleetrun, the kind of device, and every setting but those of a machine: paths of
// data, weights and output (what is in them is compared by claims_of_data()), threads, options of
// the device.
std::vector<Claim> claims_of_job(const Job& job, const std::string& backend);
// The data set and the initial weights. test: null where there are no test data.
std::vector<Claim> claims_of_data(const Job& job, const data::Fingerprint& train,
                                  const data::Fingerprint* test);

// How long a rank waits for another (comm.timeout).
std::chrono::milliseconds timeout_of(const Job& job);

// Compares the claims of all ranks of a job. Each rank makes one and then calls wait(); both from
// one thread. At most six calls of the Store a rank where all agree, whatever their number; the
// content of claims travels once for each different set of them.
class StartComparison {
 public:
  // Publishes this rank's claims. name: tells comparisons of one Store apart; each is used once.
  StartComparison(std::vector<Claim> claims, const std::string& name, JobRank rank, Store& store,
                  std::chrono::milliseconds timeout);
  // Returns where all ranks have the same. Else throws kUsage on the ranks that differ from most,
  // and kPeerLost on the others; both name the ranks, keys and values. Where most is not defined
  // (two ranks, halves) it is kUsage on all. kTimeout naming ranks that did not come.
  void wait();

 private:
  std::string key(const std::string& what) const { return name_ + "/" + what; }
  std::string judge();

  const std::string name_;
  const JobRank rank_;
  Store& store_;
  const std::chrono::milliseconds timeout_;
  std::string digest_;
};

}  // namespace fleet
