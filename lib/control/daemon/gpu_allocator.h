// The assignment of this node's GPUs to jobs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/control_messages.h"

namespace fleet {

using wire::GpuRequest;

// The names of this node's usable GPUs.
std::vector<std::string> visible_gpu_names();

class GpuAllocator {
 public:
  // The GPUs of this node: ids, or their names in CUDA_VISIBLE_DEVICES.
  explicit GpuAllocator(std::vector<std::string> names) : names_(std::move(names)) {}

  // Assigns GPUs to this job; empty if the node has none. Throws kUsage, naming the
  // describe_holders, if GPUs do not exist or other jobs occupy them.
  std::vector<std::string> allocate(const std::string& job, const GpuRequest& request);
  void release(const std::string& job);

 private:
  bool is_free(const std::string& name) const;
  std::string describe_holders() const;  // "GPUs 0 and 1 are job a's; GPU 2 is job b's"

  std::vector<std::string> names_;
  std::map<std::string, std::set<std::string>> jobs_;  // by GPU
};

}  // namespace fleet
