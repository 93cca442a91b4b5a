#include "commands.h"

#include "daemon/job_commands.h"
#include "daemon/over_stdio.h"
#include "launch/debug.h"
#include "launch/doctor/doctor.h"
#include "launch/guard.h"
#include "launch/simulate/simulate.h"
#include "node/stack_report.h"

namespace fleet {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      attach_command(), debug_command(),      doctor_command(), logs_command(),
      ls_command(),     over_stdio_command(), secret_command(), simulate_command(),
      stacks_command(), status_command(),     stop_command()};
  return all;
}

const Command* find_command(const std::vector<std::string>& arguments) {
  for (const Command& command : commands()) {
    if (!arguments.empty() && arguments[0] == command.name) return &command;
  }
  return nullptr;
}

}  // namespace fleet
