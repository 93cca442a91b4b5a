// Parses the command line and the environment into a LaunchRequest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/planning/launch_request.h"

namespace fleet {

enum class ArgumentsFor {
  kStart,
  kDoctor,  // the program is optional, and --format needs no --dry_run
};

// `arguments` excludes argv[0]. Flags override their environment variables. Throws kUsage for an
// unknown flag (suggesting the nearest one), an unsupported flag, a bad value or a missing program.
LaunchRequest parse_arguments(const std::vector<std::string>& arguments,
                              ArgumentsFor what = ArgumentsFor::kStart);

// Prints the help, version, completion or configuration that the request asks for; returns false if
// the request starts a job instead. `help` returns the help text. `completion` returns the
// completion code of a shell; a caller without completion leaves it empty.
bool print_if_requested(
    const LaunchRequest& request, const std::function<std::string()>& help,
    const std::function<std::string(const std::string& shell)>& completion = {});

}  // namespace fleet
