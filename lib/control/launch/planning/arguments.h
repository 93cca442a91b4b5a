// Parses the command line and the environment into a LaunchRequest.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/option_group.h"
#include "launch/planning/launch_config.h"

namespace fleet {

// --dry_run and its companions.
struct DryRun {
  bool wanted = false;
  std::string format = "table";  // or "json", "shell"
  int rank = -1;                 // --rank_env: show only this rank; -1: all
};

// The parsed command line, merged over the environment.
struct LaunchRequest {
  enum class Action { kRun, kPrintConfig, kPrintCompletion, kHelp, kVersion };
  Action action = Action::kRun;
  std::string help_on;  // kHelp: "" for usage, "all" for every option, or a command
  std::string shell;    // kPrintCompletion: the shell
  Settings settings;    // the options as text, with their origins: to print and to pass on
  LaunchConfig config;  // their meaning; only for kRun
  std::vector<std::string> program;  // the program and its arguments
  DryRun dry_run;
  std::string ignored;  // ignored options of other launchers and the reasons; often empty
  std::vector<std::string> notes = {};     // other lines about options of other launchers
  std::vector<std::string> warnings = {};  // printed by a start with these options
};

enum class ArgumentsFor {
  kStart,
  kDoctor,  // the program is optional, and --format needs no --dry_run
};

// `arguments` excludes argv[0]. Flags override their environment variables. Throws kUsage for an
// unknown flag (suggesting the nearest one), an unsupported flag, a bad value or a missing program.
LaunchRequest parse_arguments(const std::vector<std::string>& arguments,
                              ArgumentsFor what = ArgumentsFor::kStart);

// All options that parse_arguments() knows: fleetrun's own, and those of other launchers.
const std::vector<Option>& launch_line_options();

// Whether the word is an option of fleetrun: "--nproc_per_node=2", "-q".
bool is_launch_option(const std::string& word);

// Prints the help, version, completion or configuration that the request asks for; returns false if
// the request starts a job instead. `help` returns the help text. `completion` returns the
// completion code of a shell; a caller without completion leaves it empty. `build_info` is the
// second line of the version.
bool print_if_requested(const LaunchRequest& request, const std::function<std::string()>& help,
                        const std::function<std::string(const std::string& shell)>& completion = {},
                        const std::string& build_info = {});

// "--key=value" for every option given on the command line or in the environment, without those in
// `except` and those that have no effect in this job.
std::vector<std::string> given_flags(const LaunchRequest& request,
                                     const std::set<std::string>& except);

// A list as the value of an option: "a,b", or JSON if an entry contains a comma.
std::string list_option(const std::vector<std::string>& entries);

// An option that has no effect in this job, whether it is given or not.
struct InapplicableOption {
  std::string key;
  std::string what, next;  // message and advice, unless another check rejects the flag
};
std::vector<InapplicableOption> inapplicable_options(const LaunchRequest& request);

// Throws kUsage for an option on the command line that has no effect (values from the environment
// may be meant for other jobs), for options that contradict each other, and for invalid values. A
// job started with --via is checked here, before anything starts.
void check_options(const LaunchRequest& request, ArgumentsFor what);

// Splits `text` at blanks. '..', ".." and \ protect blanks as in a shell; nothing else has a
// special meaning. Throws kUsage, naming `origin`, for an unclosed quote.
std::vector<std::string> shell_words(const std::string& text, const std::string& origin);

}  // namespace fleet
