// Which job of this node has which GPUs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fleet {

struct GpuWish {
  std::string names;   // "0,1": these; as --gpus has them
  int count = 0;       // so many, whichever are free; 0, without names: all of the node
  bool share = false;  // also those that other jobs use
  bool none = false;   // the job runs on the CPUs
};

// The names of this node's GPUs that may be used.
std::vector<std::string> visible_gpu_names();

class GpuTable {
 public:
  // The GPUs of this node: ids, or what CUDA_VISIBLE_DEVICES calls them.
  explicit GpuTable(std::vector<std::string> names) : names_(std::move(names)) {}

  // The GPUs that this job gets, empty where the node has none. kUsage where they are not there, or
  // other jobs have them, saying which.
  std::vector<std::string> take(const std::string& job, const GpuWish& wish);
  void give_back(const std::string& job);

 private:
  bool is_free(const std::string& name) const;
  std::string holders() const;  // "GPUs 0 and 1 are job a's; GPU 2 is job b's"

  std::vector<std::string> names_;
  std::map<std::string, std::set<std::string>> jobs_;  // by GPU
};

}  // namespace fleet
