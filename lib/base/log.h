// Logging for every room: spdlog's own macros and functions, set up once per process by
// set_up_logging().
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace fleet {

// Logs go to standard error as "INFO 2026-01-19 14:53:04,945 who] message".
//   level  DEBUG INFO WARNING ERROR (any case); kUsage otherwise
//   who    shown in each line: "fleetrun", "rank 3"
void set_up_logging(const std::string& level, const std::string& who);

}  // namespace fleet
