#include "commands.h"

#include "base/error.h"
#include "base/text.h"
#include "daemon/job_commands.h"
#include "launch/planning/program.h"
#include "launch/tools/commands.h"
#include "node/stack_report.h"

namespace fleet {

namespace {

Command help_command() {
  return {.name = "help",
          .syntax = {.program = "fleetrun help",
                     .words = "[COMMAND|all]",
                     .about = "options of fleetrun or of a command; all: every option"},
          .instead = "--help"};
}

Command version_command() {
  return {.name = "version",
          .syntax = {.program = "fleetrun version", .about = "print fleetrun's version"},
          .instead = "--version"};
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      attach_command(),   debug_command(),  doctor_command(),     help_command(),
      logs_command(),     ls_command(),     over_stdio_command(), secret_command(),
      simulate_command(), stacks_command(), status_command(),     stop_command(),
      version_command()};
  return all;
}

const Command* find_command(const std::vector<std::string>& arguments) {
  for (const Command& command : commands()) {
    if (!arguments.empty() && arguments[0] == command.name) return &command;
  }
  return nullptr;
}

void refuse_mistyped(const std::string& word) {
  if (word.starts_with('-') || is_program(word)) return;
  if (word == "run_check") {
    throw Error(ErrorCode::kUsage, "it is a command of Paddle's launcher", word,
                "use fleetrun doctor to check this machine, or all nodes with --ips");
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (!command.internal) names.push_back(command.name);
  }
  const std::string nearest = nearest_name(word, names);
  if (nearest.empty()) return;
  throw Error(ErrorCode::kUsage, "neither a command nor a program in PATH", word,
              "did you mean 'fleetrun " + nearest + "'?");
}

}  // namespace fleet
