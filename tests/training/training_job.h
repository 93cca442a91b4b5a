// Training jobs on made-up images, small enough for a test, started as a user would.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/control/launch/jobs/fleetrun_process.h"
#include "train/safetensors.h"

namespace fleet {

class TrainingJob {
 public:
  // Writes job.json: a lenet on 1x28x28 images. `output` of a run is the folder OUTPUT below
  // path().
  TrainingJob();
  const JobFolder& folder() const { return folder_; }
  std::string path(const std::string& file) const { return folder_.path() + "/" + file; }
  // fleetrun with these options, the job file and these overrides ("key=value"); logs in log.NAME.
  std::unique_ptr<Fleetrun> start(const std::string& name, std::vector<std::string> options,
                                  const std::vector<std::string>& overrides,
                                  const std::string& file = "job.json");
  // The same as two nodes of `ranks` ranks each, 127.0.0.1 and 127.0.0.2; waits for both: the first
  // one's exit code.
  int run_on_two_nodes(const std::string& name, int ranks,
                       const std::vector<std::string>& overrides);
  // One rank without fleetrun, to its end: its exit code; what it wrote to standard error goes to
  // `error`.
  int run_worker(const std::vector<std::string>& arguments, std::string* error);
  // The fleet-worker of a rank, once all of them train.
  pid_t worker(const std::string& rank) const;
  // The weights in the newest checkpoint of an output folder.
  TensorFile weights(const std::string& output) const;

 private:
  JobFolder folder_;
};

// The largest difference of two sets of weights, relative to the largest value. Fails where names
// differ.
double distance(const TensorFile& a, const TensorFile& b);

}  // namespace fleet
