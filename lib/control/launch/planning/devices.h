// The GPUs that this node's ranks use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/planning/launch_config.h"

namespace fleet {

// The GPUs of this machine.
struct GpuInventory {
  int count = 0;                       // GPUs in the machine
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES if set, even if empty
};
// Counts the device files in /dev that this process may open; a container or batch system may hide
// some. If no GPU was used since boot, counts /proc. The launcher does not link CUDA.
GpuInventory find_gpus();
// The machine-wide number of the GPU that programs see as `index`. Throws kUsage if
// CUDA_VISIBLE_DEVICES does not list GPUs by number.
int number_of_visible_gpu(const GpuInventory& gpus, int index);
// CUDA_VISIBLE_DEVICES for a program that may see only these of the visible GPUs.
std::string visible_devices_of(const GpuInventory& gpus, const std::vector<int>& indices);
// The number of GPUs that a program sees.
int visible_gpu_count(const GpuInventory& gpus);
// The numbers of GPUs that exist but cannot be opened, ascending.
std::vector<int> unreadable_gpus();

// The ranks of this node, and the devices of each: an empty list means CPU.
struct LocalRanks {
  int local_world_size = 0;
  std::vector<std::vector<int>> devices;
};

// Divides the GPUs of this node among its ranks. Ids are indices among the visible
// GPUs, as FLAGS_selected_gpus expects them. If CUDA_VISIBLE_DEVICES lists numbers, --gpus takes
// absolute ids from that list (Paddle's rule). --nproc_per_node divides the GPUs into equal,
// contiguous slices; if that is impossible, a rank takes the GPU of its own number, and none has
// one if an option of another launcher asks for more ranks than GPUs. `listed` is the count that
// --ips gives this node ("host:8"): its first GPUs, or that many ranks on a node without GPUs; 0 if
// not given. Throws kUsage if GPUs are missing or cannot be divided, or if the options contradict
// each other.
LocalRanks local_ranks(const LaunchConfig& config, const GpuInventory& gpus, int listed = 0);
// Of a node with parameter servers, first the servers, then the trainers: the GPUs of --gpus are
// divided among the trainers. Without --gpus all compute on the CPU. Throws as local_ranks() does.
std::vector<std::vector<int>> devices_of_roles(const LaunchConfig& config, int servers,
                                               int trainers, const GpuInventory& gpus);
// A warning if --gpus leaves out a GPU that a program would take which uses GPU LOCAL_RANK; "" if
// not. --gpus hides no GPU from the ranks.
std::string local_rank_warning(const LaunchConfig& config, const LocalRanks& ranks,
                               const GpuInventory& gpus);

}  // namespace fleet
