// The options of a sub-command: `--KEY VALUE`, `--KEY=VALUE`, and `--KEY` alone for what is true or
// false.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// The values for `fleetrun NAME arguments...`, checked against the schema; nothing where --help was
// asked for and has been printed. kUsage naming what is wrong; words that are no options are.
std::optional<Settings> read_command_line(const std::string& name, const std::string& summary,
                                          const Schema& schema,
                                          const std::vector<std::string>& arguments);

}  // namespace fleet
