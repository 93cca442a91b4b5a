// Compares the settings that ranks must share before they train, through the Store in one exchange.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "data/fingerprint.h"
#include "store/store.h"
#include "train/job.h"
#include "train/rank_state.h"

namespace fleet {

// One value that must be equal on all ranks.
struct ComparedItem {
  std::string key;     // "data.batch_size"
  std::string value;   // one line
  std::string origin;  // "job.json", "--set"; not compared. "": not shown
};

// The items about this build of fleetrun, the kind of device, and every setting except those of a
// machine: paths of data, weights and output (compared_items_of_data() compares their content),
// threads, options of the device.
std::vector<ComparedItem> compared_items_of_job(const Job& job, const std::string& backend);
// The items about the data set and the initial weights. test: null without test data.
std::vector<ComparedItem> compared_items_of_data(const Job& job, const data::Fingerprint& train,
                                                 const data::Fingerprint* test);

// How long a rank waits for another (comm.timeout).
std::chrono::milliseconds timeout_of(const Job& job);

// Compares the items of all ranks of a job. Each rank creates one object and then calls wait();
// both on one thread. If all agree, each rank makes at most six calls of the Store, whatever the
// number of ranks; each distinct set of items is transferred only once.
class StartComparison {
 public:
  // Publishes this rank's items. name: identifies the comparison within a Store; use each once.
  StartComparison(const std::vector<ComparedItem>& items, const std::string& name, JobRank rank,
                  Store& store, std::chrono::milliseconds timeout);
  // Returns if all ranks have the same items. Else throws kUsage on the ranks that differ from the
  // majority, and kPeerLost on the others; both name the ranks, keys and values. Without a majority
  // (two ranks, halves) it throws kUsage on all. kTimeout naming ranks that did not arrive.
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
