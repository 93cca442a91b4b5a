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
// Counted from /dev (those that may be opened: a container or a batch system may keep some away)
// and, where no GPU was used since boot, /proc: the launcher links no CUDA.
GpuInventory find_gpus();
// The machine's own number of the GPU that programs see as `index`. kUsage where
// CUDA_VISIBLE_DEVICES does not name GPUs by number.
int number_of_visible_gpu(const GpuInventory& gpus, int index);
// CUDA_VISIBLE_DEVICES for a program that is to see only these of the visible GPUs.
std::string visible_devices_of(const GpuInventory& gpus, const std::vector<int>& indices);
// How many of them a program sees.
int visible_gpu_count(const GpuInventory& gpus);
// The numbers of those that are there and may not be opened, ascending.
std::vector<int> unreadable_gpus();

// For each rank of this node its devices; empty lists: CPU. The ids are indices among the visible
// GPUs, as FLAGS_selected_gpus wants them. Where CUDA_VISIBLE_DEVICES lists numbers, --gpus names
// absolute ids, which must be among them (Paddle's rule). --nproc_per_node cuts the GPUs into
// equal, contiguous slices. `listed`: how many of them --ips gives this node ("host:8"), the first
// ones; on a node without GPUs that many ranks; 0: not given. kUsage where they are not there, or
// not to be divided, or the options contradict each other.
std::vector<std::vector<int>> devices_of_ranks(const Settings& settings, const GpuInventory& gpus,
                                               int listed = 0);

}  // namespace fleet
