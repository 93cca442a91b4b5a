// Hugging Face's accelerate launch, which passes most of its options to its library in environment
// variables. Follows commands/launch.py and utils/launch.py of accelerate 1.15.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "launch/planning/environment.h"

namespace fleet {

// An option of which fleetrun has no own.
struct AccelerateOption {
  enum class Type {
    kSwitch,
    kText,
    kInteger,
    kNumber,
    kTruth,  // every text is true, as bool() of Python has it
    kBinary  // yes or no, as 1 or 0
  };

  const char* name;
  Type type;
  const char* initial;       // its default, as JSON
  const char* choices = "";  // "no,fp16"; "": any
};
const std::vector<AccelerateOption>& accelerate_arguments();
// The value as Python reads it; nullopt if it is not of the type, or none of the choices.
std::optional<Json> read_accelerate_value(const AccelerateOption& option, const std::string& text);

// Values by name, with Python's types. null is None.
using AccelerateArguments = std::map<std::string, Json>;

// The defaults of all of accelerate_arguments().
AccelerateArguments initial_arguments();
// As Python's str().
std::string python_text(const Json& value);
bool is_true(const AccelerateArguments& arguments, const std::string& name);

// The file that `accelerate config` writes; "" if it does not exist.
std::string default_accelerate_config();
// Adds the values of a configuration file that the line does not have. `given`: the names that it
// has. Throws kUsage for a file that accelerate would not read.
void add_accelerate_config(const std::string& path, const std::set<std::string>& given,
                           AccelerateArguments* arguments);

// The way in which accelerate would start the ranks.
enum class AccelerateLauncher {
  kOneProcess,  // one rank, or CPUs
  kTorchrun,
  kDeepSpeed
};
// The variables that accelerate adds to the environment. MASTER_ADDR and others of torchrun are
// not among them.
Variables accelerate_variables(const AccelerateArguments& arguments, AccelerateLauncher launcher);

}  // namespace fleet
