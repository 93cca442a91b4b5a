// The command line and the environment, into a LaunchRequest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/options.h"

namespace fleet {

enum class ArgumentsOf {
  kStart,
  kDoctor,  // the program may be left out, --format stands alone
};

// `arguments` without the program's own name. Flags win over their environment twins. kUsage for an
// unknown flag (naming the nearest), an unsupported one, a bad value, or a missing program.
LaunchRequest parse_arguments(const std::vector<std::string>& arguments,
                              ArgumentsOf what = ArgumentsOf::kStart);

// Prints the help, version, completion or configuration that a request asks for. false: it is to be
// run. `help` on what the request names; `completion` of a shell, which the caller may not have.
bool answered(const LaunchRequest& request, const std::function<std::string()>& help,
              const std::function<std::string(const std::string& shell)>& completion = {});

}  // namespace fleet
