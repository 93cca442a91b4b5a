// The launcher: see lib/launch.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "commands.h"
#include "launch/launch.h"
#include "launch/via_slurm.h"

namespace {

// Ways to start that --via chooses from.
fleet::LaunchExtras extras() {
  fleet::LaunchExtras all;
  all.vias = {{"slurm", "in the nodes of this Slurm allocation", fleet::start_via_slurm}};
  for (const fleet::Command& command : fleet::commands()) {
    std::string left = "  fleetrun " + command.name;
    left.resize(std::max<size_t>(left.size() + 1, 26), ' ');
    all.commands_help +=
        (all.commands_help.empty() ? "commands:\n" : "") + left + command.summary + "\n";
  }
  return all;
}

int run(std::vector<std::string> arguments) {
  const fleet::Command* command = fleet::find_command(arguments);
  if (!command) return fleet::launch(arguments, extras());
  arguments.erase(arguments.begin());
  return command->run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  int code = 1;
  try {
    code = run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const fleet::Error& error) {
    std::fprintf(stderr, "fleetrun: %s\n", error.what());
    code = fleet::exit_code_for(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fleetrun: %s\n", error.what());
  }
  std::fflush(nullptr);
  // Taking down gRPC's globals would only cost time: everything of the job has ended.
  ::_exit(code);
}
