// Queries the NVIDIA driver and libraries of this machine.
#pragma once

#include <chrono>
#include <string>

#include "launch/tools/doctor/facts.h"

namespace fleet {

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
