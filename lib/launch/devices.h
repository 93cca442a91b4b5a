// Which GPUs this node's ranks use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// What the machine offers.
struct GpuInventory {
  int count = 0;                       // GPUs in the machine
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES, where it is set (also if empty)
};
// Counted from /proc and /dev: the launcher links no CUDA.
GpuInventory find_gpus();

// For each rank of this node its devices; empty lists: CPU. The ids are indices among the visible
// GPUs, as FLAGS_selected_gpus wants them. Where CUDA_VISIBLE_DEVICES lists numbers, --gpus names
// absolute ids, which must be among them (Paddle's rule). --nproc_per_node cuts the GPUs into
// equal, contiguous slices. kUsage where they are not there, or not to be divided.
std::vector<std::vector<int>> devices_of_ranks(const Settings& settings, const GpuInventory& gpus);

}  // namespace fleet
