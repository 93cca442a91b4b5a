// What the launcher prints, byte for byte as Paddle's does.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "launch/environment.h"

namespace fleet {

// "-----------  Configuration Arguments -----------", sorted "key: value" lines, 48 dashes; with a
// newline at the end. Values are Python's: None for what is not given. Of `all` options, or of
// those that differ from their default; the program in any case.
std::string configuration_block(const Settings& settings, const std::vector<std::string>& program,
                                bool all);

// The "Distributed Envs" table, four blanks before each line, without a newline at the end.
// Paddle's is 93 columns wide. `layout`: "paddle"; "narrow": what fits into `columns` (0: 80),
// without the blanks; or "auto": Paddle's, unless the terminal's `columns` are fewer (0: it is no
// terminal).
std::string environment_table(const Variables& variables, const std::string& layout = "paddle",
                              int columns = 0);

// log/endpoints.log.
std::string endpoints_log(const World& world);

}  // namespace fleet
