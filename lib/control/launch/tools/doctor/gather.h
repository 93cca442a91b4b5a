// Gathers the facts about this machine for the checks.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "launch/tools/doctor/facts.h"

namespace fleet {

// Everything about this node except its place in the job. Queries NVIDIA's driver and NCCL in a
// child process with a timeout of 10 s. Call it before threads exist.
//   environment  "NAME=value" each; keeps those of must_match() or is_node_specific()
NodeFacts gather_facts(const std::vector<std::string>& environment, const std::string& log_dir);

// The parts that read folders; `root` is the prefix of /sys, for tests.
std::vector<RdmaPort> read_rdma(const std::string& root = {});
// The settings of NCCL's configuration file: "NAME=value" lines.
std::map<std::string, std::string> read_nccl_conf(const std::string& path);
// Only the facts that the settings checks need; fast enough for every start.
NodeFacts gather_settings(const std::vector<std::string>& environment);

struct GpuLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string nccl;   // path; "" if not found
  std::string cudnn;  // path; "" if not found
};

// Queries them in a child process, so that a driver that crashes or hangs (a GPU that fell off its
// bus) becomes a finding. Gives up after `timeout`. Call it before threads exist.
GpuFacts probe_gpus(std::chrono::milliseconds timeout = std::chrono::seconds(10));
GpuFacts probe_gpus(const GpuLibraries& libraries, std::chrono::milliseconds timeout);

}  // namespace fleet
