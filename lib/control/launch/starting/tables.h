// The launcher's output that matches Paddle's byte by byte.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/environment.h"
#include "launch/planning/log_config.h"

namespace fleet {

// "-----------  Configuration Arguments -----------", sorted "key: value" lines, 48 dashes and a
// newline. Values are formatted as in Python, None for values not given. Contains all options if
// `all`, else those that differ from their default, and always the program.
std::string configuration_block(const Settings& settings, const std::vector<std::string>& program,
                                bool all);

// The "Distributed Envs" table with four blanks before each line, without a final newline. Paddle's
// is 93 columns wide. `style`: kPaddle; kNarrow, which fits into `columns` (0: 80) and has no
// leading blanks; or "auto", which is Paddle's unless the terminal has fewer `columns` (0: not a
// terminal).
std::string environment_table(const Variables& variables, TableStyle style = TableStyle::kPaddle,
                              int columns = 0);

// The content of log/endpoints.log.
std::string endpoints_log(const World& world);

}  // namespace fleet
