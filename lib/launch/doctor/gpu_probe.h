// What NVIDIA's driver and libraries say of this machine.
#pragma once

#include <chrono>
#include <string>

#include "launch/doctor/facts.h"

namespace fleet {

struct GpuLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string nccl;   // a path; "": not there
  std::string cudnn;  // a path; "": not there
};

// Asks them in a child process, so that a driver that crashes or hangs (a GPU that fell off its
// bus) is a finding: after `patience` it is given up. Before threads exist.
GpuFacts probe_gpus(std::chrono::milliseconds patience = std::chrono::seconds(10));
GpuFacts probe_gpus(const GpuLibraries& libraries, std::chrono::milliseconds patience);

}  // namespace fleet
