// Device settings of a job: keys of the job file and Paddle's flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "train/job.h"

namespace fleet {

// Applies Paddle's flags from the environment (FLAGS_cudnn_exhaustive_search, ...) over the file:
// each sets the value of its corresponding key. kUsage naming the variable if its value is invalid.
// Overrides on the command line take precedence.
void apply_flags(ConfigTree& tree);
// Applies the variables of Paddle's parameter servers, FLAGS_communicator_* and
// FLAGS_rpc_deadline, in a job with servers. Returns a line for each. kUnsupported naming one
// that is not supported (strategy/server_mode.h).
std::vector<std::string> apply_server_flags(ConfigTree& tree);

DeviceOptions device_options(const Job& job);
// The values of backends' own options (BackendDef::options) by their names, for choose_device().
ConfigTree backend_options(const Job& job);
// The keys and flags the user gave that have no effect on this backend; empty on a GPU.
std::vector<std::string> without_effect(const Job& job, const std::string& backend);

// One line for each of Paddle's environment variables that has no effect here: CPU_NUM, and one
// line for all FLAGS_* that nothing reads. servers: whether the job has parameter servers.
std::vector<std::string> environment_without_effect(bool servers = false);

// The device that this rank requests from choose_device().
struct DeviceRequest {
  std::string name;  // "auto", "cpu", "cuda"
  int index = 0;
  std::string note;       // the reason for the CPU, if the user did not request it
  bool assigned = false;  // the launcher has given this rank a GPU
};
// wanted: train.device. selected: FLAGS_selected_gpus, this rank's GPUs; it uses the
// first. launched: a launcher started this rank; it passes no GPU to ranks that must not use one.
// kUsage if selected is not a list of numbers.
DeviceRequest device_request(const std::string& wanted, const std::optional<std::string>& selected,
                             bool launched);

// Whether batches transfer pixels as bytes to this backend's device (data.pixels).
bool feeds_bytes(const Job& job, const std::string& backend);

}  // namespace fleet
