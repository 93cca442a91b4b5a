// What a job says about the device it runs on: keys of the job file and Paddle's flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "train/job.h"

namespace fleet {

// Paddle's flags from the environment (FLAGS_cudnn_exhaustive_search, ...) over what the file says:
// each becomes the value of the key it stands for. kUsage naming the variable where it cannot be
// one. Overrides of the command line go over it.
void apply_flags(ConfigTree& tree);

DeviceOptions device_options(const Job& job);
// The keys and flags the user gave that mean nothing to this backend; empty on a GPU.
std::vector<std::string> without_effect(const Job& job, const std::string& backend);

// A line for each of Paddle's variables in the environment that has no effect here: CPU_NUM, and
// FLAGS_* that nothing reads, all of them in one.
std::vector<std::string> environment_without_effect();

// Which device this rank asks choose_device() for.
struct DeviceWish {
  std::string name;  // "auto", "cpu", "cuda"
  int index = 0;
  std::string note;  // why it is the CPU, where nobody asked for that
};
// wanted: train.device. selected: FLAGS_selected_gpus, this rank's GPUs, the first of which it
// takes. launched: the rank was started by a launcher, which gives no GPU to a rank that shall have
// none. kUsage where selected is no list of numbers.
DeviceWish device_wish(const std::string& wanted, const std::optional<std::string>& selected,
                       bool launched);

// Whether batches bring bytes to this backend's device (data.pixels).
bool feeds_bytes(const Job& job, const std::string& backend);

}  // namespace fleet
