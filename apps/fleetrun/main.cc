// The launcher: see lib/control/launch.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "apps/fleetrun/build_info.h"
#include "base/error.h"
#include "base/file_size_signal.h"
#include "base/limits.h"
#include "base/standard_error.h"
#include "base/standard_streams.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "commands.h"
#include "daemon/fleetd.h"
#include "daemon/node_jobs.h"
#include "daemon/via.h"
#include "launch/launch.h"
#include "launch/starting/via_slurm.h"
#include "pages/pages.h"
#include "rendezvous/types.h"
#include "viewing/web/sites.h"

namespace {

// --print_completion.
std::string completion(const std::string& shell) {
  return shell == "zsh"    ? fleet::zsh_completion()
         : shell == "fish" ? fleet::fish_completion()
                           : fleet::bash_completion();
}

std::string list_of_commands() {
  std::string lines = "commands:\n";
  for (const fleet::Command& command : fleet::commands()) {
    if (command.internal) continue;
    std::string left = "  fleetrun " + command.name;
    left.resize(std::max<size_t>(left.size() + 2, 26), ' ');
    lines += fleet::wrapped_text(left + command.summary(), left.size(), fleet::help_width()) + "\n";
  }
  return lines;
}

// The parts of this program that launch() needs: launch methods of --via, and commands.
fleet::LaunchExtras extras() {
  fleet::LaunchExtras all;
  all.completion = completion;
  all.build_info = fleet::build_info();
  all.vias = {
      {"slurm", "on the nodes of this Slurm allocation", fleet::start_via_slurm,
       fleet::plan_via_slurm},
      {"ssh", "on the nodes of --ips, over ssh", fleet::start_via_ssh, fleet::plan_via_ssh},
      {"fleetd", "through a daemon on each node", fleet::start_via_fleetd, fleet::plan_via_fleetd}};
  all.command_help = [](const std::string& name) {
    if (name.empty()) return list_of_commands();
    const fleet::Command* command = fleet::find_command(name);
    return command && !command->internal ? fleet::command_help(command->syntax) : "";
  };
  return all;
}

int run(std::vector<std::string> arguments) {
  const fleet::Command* command = arguments.empty() ? nullptr : fleet::find_command(arguments[0]);
  if (!command && !arguments.empty()) fleet::refuse_mistyped(arguments[0]);
  if (!command) return fleet::launch(arguments, extras());
  const bool about_itself =
      arguments.size() > 1 && (arguments[1] == "--help" || arguments[1] == "-h");
  if (!command->instead.empty() && !about_itself) {
    arguments[0] = command->instead;
    return fleet::launch(arguments, extras());
  }
  arguments.erase(arguments.begin());
  return fleet::run_command(*command, arguments);
}

void print_error(const std::string& name, const std::string& what) {
  fleet::write_standard_error(name + ": " + fleet::escape_controls(what) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  fleet::reserve_standard_streams();
  fleet::ignore_file_size_signal();
  const std::string path = argc > 0 ? argv[0] : "", called = path.substr(path.rfind('/') + 1);
  // One binary with three names; fleetd starts itself as fleetrun.
  const bool daemon = called == "fleetd", torchrun = called == "torchrun";
  const char* name = daemon ? "fleetd" : torchrun ? "torchrun" : "fleetrun";
  int code = 1;
  try {
    std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    if (!daemon) fleet::die_with_fleetd();
    if (torchrun) arguments.insert(arguments.begin(), "--compat=torchrun");
    code = daemon ? fleet::fleetd_main(arguments, fleet::fleetd_page()) : run(arguments);
  } catch (const fleet::Error& error) {
    print_error(name, error.what());
    code = fleet::launcher_exit_code(error.code());
  } catch (const std::exception& error) {
    print_error(name, fleet::text_with_limit(error));
  }
  if (code == 0 && !fleet::flush_standard_output()) {
    print_error(name, fleet::kOutputLost);
    code = 1;
  }
  std::fflush(nullptr);
  fleet::flush_standard_error();
  // Do not spend time on destroying gRPC's globals: the whole job has ended.
  ::_exit(code);
}
