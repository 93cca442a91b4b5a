#include <algorithm>

#include "launch/planning/compat/option.h"

namespace fleet {

const std::vector<CompatOption>& compat_options() {
  static const std::vector<CompatOption> all = [] {
    std::vector<CompatOption> together;
    for (const auto options :
         {several_options, paddle_options, torchrun_options, mpirun_options, horovodrun_options,
          srun_options, deepspeed_options, accelerate_options}) {
      for (CompatOption& option : options()) together.push_back(std::move(option));
    }
    return together;
  }();
  return all;
}

std::string compat_help() {
  constexpr size_t kWidth = 98;
  std::vector<std::string> launchers;
  for (const CompatOption& option : compat_options()) {
    if (std::find(launchers.begin(), launchers.end(), option.of) == launchers.end()) {
      launchers.push_back(option.of);
    }
  }
  std::string text;
  for (const std::string& launcher : launchers) {
    std::string line = "  " + launcher + ":";
    for (const CompatOption& option : compat_options()) {
      for (const std::string& flag : option.flags) {
        if (option.of != launcher) continue;
        if (line.size() + flag.size() >= kWidth) {
          text += line + "\n";
          line = "   ";
        }
        line += " " + flag;
      }
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace fleet
