// What the launcher prints, byte for byte as Paddle's does.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "launch/environment.h"

namespace fleet {

// "-----------  Configuration Arguments -----------", sorted "key: value" lines, 48 dashes; with a
// newline at the end. Values are Python's: None for what is not given.
std::string configuration_block(const Settings& settings, const std::vector<std::string>& program);

// The "Distributed Envs" table, four blanks before each line, without a newline at the end.
std::string environment_table(const Variables& variables);

// log/endpoints.log.
std::string endpoints_log(const World& world);

}  // namespace fleet
