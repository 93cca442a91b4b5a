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
      {"attach", "JOB: show it until it ends, pass signals on", attach_command},
      {"debug", "start or attach to one rank of a running job in a debugger", debug},
      {"doctor", "check this node, or all nodes and what is between them", doctor},
      {"logs", "JOB [-f] [--rank R]: what it shows", logs_command},
      {"ls", "the jobs of this host, or of fleetds", ls_command},
      {"over_stdio", "(what --via=ssh runs on a node)", over_stdio_command},
      {"secret", "make or show the secret that the nodes of your jobs share", secret_command},
      {"simulate", "how long the rendezvous of a large job takes, on this machine", simulate},
      {"stacks", "what every rank of a running job does now", stacks_command},
      {"status", "JOB: what is known of it, on each node", status_command},
      {"stop", "JOB: end it", stop_command},
  };
  return all;
}

const Command* find_command(const std::vector<std::string>& arguments) {
  for (const Command& command : commands()) {
    if (!arguments.empty() && arguments[0] == command.name) return &command;
  }
  return nullptr;
}

}  // namespace fleet
