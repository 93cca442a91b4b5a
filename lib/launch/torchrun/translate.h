// torchrun's command line and PET_* variables, in terms of fleetrun's own settings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "launch/compat/line.h"

namespace fleet {

// What of the machine decides: so that the rest can be tested without it.
struct TorchrunMachine {
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::function<int()> visible_gpus;
  std::function<int()> cpus;  // that are online, as Python's os.cpu_count()
};
TorchrunMachine torchrun_machine();

// Whether torchrun's defaults, logs and console are wanted: --compat=torchrun.
bool acts_as_torchrun(const Settings& settings);
// Whether the configuration and the table of the environment are printed: torchrun prints neither.
bool shows_start(const Settings& settings);

// Defaults of torchrun that are not fleetrun's. Before everything else is set.
void add_torchrun_defaults(ConfigTree* tree);

// What PET_* and other variables of torchrun's say, where `tree` does not have it yet. kUsage for a
// switch that is no number: torchrun reads them as numbers, 0 is off.
void add_torchrun_environment(const TorchrunMachine& machine, ConfigTree* tree);

// --nproc_per_node=gpu, --rdzv_endpoint and the like become --nproc_per_node=8, --master and so on,
// under the origin of what was given. Returns what has no meaning here, to be named. kUsage for
// what cannot be done.
std::vector<IdleFlag> translate_torchrun(const TorchrunMachine& machine, ConfigTree* tree);

}  // namespace fleet
