// --numa_binding: the cores near a rank's GPU, as in torch.numa.binding.
#pragma once

#include <string>
#include <vector>

namespace fleet {

enum class NumaBinding {
  kNode,         // the cores of the GPU's NUMA node
  kSocket,       // the cores of all NUMA nodes of that socket
  kExclusive,    // the GPU's share of the node's physical cores
  kCoreComplex,  // cores that share a last-level cache, a different one for each GPU of the node
};

// The system's topology, below `root` ("" except in tests).
struct NumaSystem {
  std::string root;
  std::vector<int> allowed;  // the cores that this process may use
  // PCI addresses ("0000:3b:00.0") of the GPUs in bus order, which is CUDA's order for GPUs of one
  // model.
  std::vector<std::string> gpus;
};
NumaSystem numa_system(std::vector<int> allowed, const std::string& root = "");

// The machine's NUMA nodes; 1 if the kernel does not tell.
int numa_nodes(const std::string& root = "");

// The cores for the rank that uses `gpu` (an index into gpus), ascending. Throws kUsage if the GPU
// does not exist or has no usable core.
std::vector<int> cores_near_gpu(const NumaSystem& system, NumaBinding binding, int gpu);

}  // namespace fleet
