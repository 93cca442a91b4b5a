// Options of other launchers (mpirun, srun, deepspeed, ...) that are no settings of fleetrun. Each
// is one entry with everything about it, in the file of its launcher. What is only another name
// for an option of ours is an alias of that, in launch/options.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fleet {

class CompatLine;

struct CompatOption {
  std::string of;                  // its launcher: "mpirun"; kSeveral: more than one has it
  std::vector<std::string> flags;  // as they are written: "-np", "--bind-to"
  std::string value = {};          // what the value is, for messages; empty: a flag
  int values = 1;                  // words of the value: two of "--mca KEY VALUE"

  // What becomes of it, one of these:
  std::string idle = {};     // accepted; why it has no meaning here, which is told once
  std::string refused = {};  // why it cannot be used
  std::function<void(const std::string& value, CompatLine& line)> translate = {};

  std::string next = {};     // with `refused`: what to do; empty: leave it out
  std::string instead = {};  // with `refused`: the option to write in its place: "--max_restart=3"
  // The flag is also one of ours, or of an entry before; these are the values that mean this one.
  std::function<bool(const std::string& value)> when = {};
  bool late = false;  // translated after those that name nodes
};

inline constexpr char kSeveral[] = "several";

// All of them; the first that has a flag counts.
const std::vector<CompatOption>& compat_options();

// For the help: lines with the flags of each launcher.
std::string compat_help();

// By launcher. A new one is its file, and its line in options.cc.
std::vector<CompatOption> several_options();  // that mean something else to each, or the same
std::vector<CompatOption> paddle_options();
std::vector<CompatOption> torchrun_options();
std::vector<CompatOption> mpirun_options();  // Open MPI's, MPICH's and Intel MPI's
std::vector<CompatOption> horovodrun_options();
std::vector<CompatOption> srun_options();
std::vector<CompatOption> deepspeed_options();
std::vector<CompatOption> accelerate_options();

}  // namespace fleet
