// --numa_binding: which cores are near a rank's GPU, as torch.numa.binding has it.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// What the system knows, below `root` ("" but in tests).
struct NumaSystem {
  std::string root;
  std::vector<int> allowed;  // the cores that this process may use
  // PCI addresses ("0000:3b:00.0") of the GPUs in their order on the bus, which is CUDA's among
  // GPUs of one kind.
  std::vector<std::string> gpus;
};
NumaSystem numa_system(std::vector<int> allowed, const std::string& root = "");

// The cores for the rank that uses `gpu` (an index into gpus), ascending; `mode` is
//   node          those of the NUMA node that has the GPU
//   socket        those of all NUMA nodes of that socket
//   exclusive     the GPU's share of the node's physical cores
//   core-complex  those that share a last-level cache, another one for each GPU of the node
// kUsage where the GPU is not there, or has no core that may be used.
std::vector<int> cores_near_gpu(const NumaSystem& system, const std::string& mode, int gpu);

}  // namespace fleet
