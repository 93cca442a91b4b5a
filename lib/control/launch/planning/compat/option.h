// Options of other launchers (mpirun, srun, deepspeed, ...) that are not settings of fleetrun. Each
// is one call with everything about it, in the file of its launcher. An option that is only another
// name for one of ours is an alias in launch/options instead.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fleet {

class CompatLine;

struct CompatOption {
  using Translate = std::function<void(const std::string& value, CompatLine& line)>;

  std::string of = {};                  // its launcher: "mpirun"; kSeveral if several have it
  std::vector<std::string> flags = {};  // as written: "-np", "--bind-to"
  std::string value = {};               // name of the value in messages; empty for a flag

  // The action, one of these:
  std::string ignored = {};  // accepted without effect; the reason, which is printed once
  std::string refused = {};  // rejected; the reason
  Translate translate = {};

  std::string next = {};  // with `refused`: the advice; empty: "leave it out"
  int values = 1;         // words of the value: two of "--mca KEY VALUE"
  bool late = false;      // translated after the options that name nodes
  // Set if the flag is also one of ours or of an earlier entry: whether a value selects this entry.
  std::function<bool(const std::string& value)> when = {};
};

inline constexpr char kSeveral[] = "several";

// All entries; the first entry with a flag wins.
const std::vector<CompatOption>& compat_options();

// Help lines that list the flags of each launcher.
std::string compat_help();

// The options of one launcher. Each call adds one, and returns it: set its other members there.
class CompatGroup {
 public:
  using Flags = std::vector<std::string>;
  explicit CompatGroup(std::string launcher) : launcher_(std::move(launcher)) {}

  CompatOption& ignored(Flags flags, std::string value, std::string why);
  CompatOption& refused(Flags flags, std::string value, std::string why, std::string next = {});
  CompatOption& translated(Flags flags, std::string value, CompatOption::Translate translate);
  // Sets our option `key` to `prefix` and the value.
  CompatOption& sets(Flags flags, std::string value, std::string key, std::string prefix = {});
  // Exports the value to the ranks as the environment variable `name`.
  CompatOption& variable(std::string flag, std::string value, std::string name);

  std::vector<CompatOption> options;

 private:
  CompatOption& add(CompatOption option);
  std::string launcher_;
};

// Options by launcher. A new launcher is one file and its line in options.cc.
CompatGroup several_options();  // flags shared by several launchers, with the same meaning or not
CompatGroup paddle_options();
CompatGroup torchrun_options();
CompatGroup mpirun_options();  // Open MPI's, MPICH's and Intel MPI's
CompatGroup horovodrun_options();
CompatGroup srun_options();
CompatGroup deepspeed_options();
CompatGroup accelerate_options();

}  // namespace fleet
