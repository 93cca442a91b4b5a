// Options of other launchers (mpirun, srun, deepspeed, ...) that are not settings of fleetrun. Each
// is one entry with everything about it, in the file of its launcher. An option that is only
// another name for one of ours is an alias in launch/options instead.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fleet {

class CompatLine;

struct CompatOption {
  std::string of;                  // its launcher: "mpirun"; kSeveral if several have it
  std::vector<std::string> flags;  // as written: "-np", "--bind-to"
  std::string value = {};          // name of the value in messages; empty for a flag
  int values = 1;                  // words of the value: two of "--mca KEY VALUE"

  // The action, one of these:
  std::string ignored = {};  // accepted without effect; the reason, which is printed once
  std::string refused = {};  // rejected; the reason
  std::function<void(const std::string& value, CompatLine& line)> translate = {};

  std::string next = {};     // with `refused`: the advice; empty: "leave it out"
  std::string instead = {};  // with `refused`: the option to use instead, "--max_restart=3"
  // Set if the flag is also one of ours or of an earlier entry: whether a value selects this entry.
  std::function<bool(const std::string& value)> when = {};
  bool late = false;  // translated after the options that name nodes
};

inline constexpr char kSeveral[] = "several";

// All entries; the first entry with a flag wins.
const std::vector<CompatOption>& compat_options();

// Help lines that list the flags of each launcher.
std::string compat_help();

// Options by launcher. A new launcher is one file and its line in options.cc.
std::vector<CompatOption>
several_options();  // flags shared by several launchers, with the same meaning or not
std::vector<CompatOption> paddle_options();
std::vector<CompatOption> torchrun_options();
std::vector<CompatOption> mpirun_options();  // Open MPI's, MPICH's and Intel MPI's
std::vector<CompatOption> horovodrun_options();
std::vector<CompatOption> srun_options();
std::vector<CompatOption> deepspeed_options();
std::vector<CompatOption> accelerate_options();

}  // namespace fleet
