#include "launch/compat/option.h"

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

}  // namespace fleet
