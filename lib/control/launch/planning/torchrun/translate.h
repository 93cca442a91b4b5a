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
  // Whether an address or a name is this host's.
  std::function<bool(const std::string&)> is_local = [](const std::string&) { return true; };
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

// --local_addr with an address of this host is --host. torchrun uses another address, such as a
// gateway's, only on node 0 of a c10d rendezvous: as the ranks' MASTER_ADDR. There it stays
// `local_addr`; elsewhere it is added to `ignored`. Call it after translate_rendezvous().
void translate_local_address(const TorchrunMachine& machine, ConfigTree* tree,
                             std::vector<IgnoredFlag>* ignored);

}  // namespace fleet
