#include "commands.h"

#include "launch/guard.h"

namespace fleet {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"secret", "make or show the secret that the nodes of your jobs share", secret_command},
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
