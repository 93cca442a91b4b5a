#include "commands.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/program.h"

namespace fleet {

FLEET_COMMAND(help) {
  def.syntax = {.program = "fleetrun help",
                .words = "[COMMAND|all]",
                .about = "show the options of fleetrun, of a command, or all options"};
  def.instead = "--help";
}

FLEET_COMMAND(version) {
  def.syntax = {.program = "fleetrun version", .about = "print fleetrun's version"};
  def.instead = "--version";
}

namespace {

// What other tools call a command. Most are programs too, which nobody runs as ranks.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"cancel", "stop"}, {"halt", "stop"},    {"htop", "top"},  {"jobs", "ls"},
    {"kill", "stop"},   {"killall", "stop"}, {"list", "ls"},   {"log", "logs"},
    {"pkill", "stop"},  {"ps", "ls"},        {"rm", "stop"},   {"scancel", "stop"},
    {"squeue", "ls"},   {"stat", "status"},  {"tail", "logs"}, {"terminate", "stop"}};

}  // namespace

void refuse_mistyped(const std::string& word) {
  for (const auto& [name, meant] : kOtherNames) {
    if (word != name) continue;
    throw Error(ErrorCode::kUsage, "it is not a command of fleetrun", word,
                std::string("use 'fleetrun ") + meant + "'; 'fleetrun -- " + word +
                    " ...' runs a program of this name in each rank");
  }
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
