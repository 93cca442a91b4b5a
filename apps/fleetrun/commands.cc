#include "commands.h"

#include <algorithm>
#include <string_view>

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

// A start looks at the names only: it does not declare the options of all commands.
struct NamedCommand {
  std::string_view name;
  Command (*make)();
};
constexpr NamedCommand kCommands[] = {{"attach", attach_command},
                                      {"debug", debug_command},
                                      {"doctor", doctor_command},
                                      {"help", help_command},
                                      {"logs", logs_command},
                                      {"ls", ls_command},
                                      {"over_stdio", over_stdio_command},
                                      {"secret", secret_command},
                                      {"simulate", simulate_command},
                                      {"stacks", stacks_command},
                                      {"status", status_command},
                                      {"stop", stop_command},
                                      {"version", version_command}};

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> made;
    for (const NamedCommand& command : kCommands) made.push_back(command.make());
    return made;
  }();
  return all;
}

const Command* find_command(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return nullptr;
  const auto* found = std::ranges::find(kCommands, arguments[0], &NamedCommand::name);
  return found == std::end(kCommands) ? nullptr
                                      : &commands()[static_cast<size_t>(found - kCommands)];
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
