// Translates torchrun's command line and PET_* variables into fleetrun's settings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/compat/line.h"

namespace fleet {

// The machine's properties that matter, injected so that the rest can be tested without them.
struct TorchrunMachine {
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::function<int()> visible_gpus;
  std::function<int()> cpus;  // online CPUs, as in Python's os.cpu_count()
};
TorchrunMachine torchrun_machine();

// Whether --compat=torchrun selects torchrun's defaults, logs and console.
bool is_torchrun_mode(const Settings& settings);

// The origin of a setting that is torchrun's default.
inline constexpr char kTorchrunDefault[] = "torchrun's default";

// Adds the defaults of torchrun that differ from fleetrun's. Call it before setting anything else.
void add_torchrun_defaults(ConfigTree* tree);

// Adds the settings of PET_* and other torchrun variables that `tree` does not have yet. Throws
// kUsage for a switch that is not a number: torchrun reads switches as numbers, 0 is off.
void add_torchrun_environment(const TorchrunMachine& machine, ConfigTree* tree);

// Translates --nproc_per_node=gpu, --rdzv_endpoint and others into --nproc_per_node=8, --master and
// so on, and keeps their origin. Returns the options without effect. Throws kUsage for impossible
// requests.
std::vector<IgnoredFlag> translate_torchrun(const TorchrunMachine& machine, ConfigTree* tree);

// Sets `master` for several nodes, `master_port` for one, and the settings of --rdzv_conf. Adds
// options without effect to `ignored`. Throws kUsage for invalid values.
void translate_rendezvous(ConfigTree* tree, std::vector<IgnoredFlag>* ignored);

}  // namespace fleet
