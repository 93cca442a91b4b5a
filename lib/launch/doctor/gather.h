// Reads the machine for the checks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/doctor/facts.h"

namespace fleet {

// Everything about this node but who it is in the job. Asks NVIDIA's driver and NCCL in a process
// of their own, which is given up after 10 s. Before threads exist.
//   environment  "NAME=value" each; kept is what must_be_alike() or is_of_one_node()
NodeFacts gather_facts(const std::vector<std::string>& environment, const std::string& log_dir);

// Its parts that read folders, with what is before /sys, so that they can be tested.
std::vector<RdmaPort> read_rdma(const std::string& root = {});
// The settings of NCCL's configuration file: "NAME=value" lines.
std::map<std::string, std::string> read_nccl_conf(const std::string& path);
// What the settings' checks need, and little else: for every start.
NodeFacts gather_settings(const std::vector<std::string>& environment);

}  // namespace fleet
