// Logging for every module: spdlog's own macros and functions, set up once per process by
// set_up_logging().
#pragma once

#include <spdlog/spdlog.h>

#include <string>

// Compiled once, in log.cc: this template is half the cost of compiling a file that logs.
#if FMT_VERSION < 100000
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::basic_format_args<fmt::format_context>,
                                                   fmt::detail::locale_ref);
#endif

namespace fleet {

// Logs go to standard error as "INFO 2026-01-19 14:53:04,945 process] message".
//   level  DEBUG INFO WARNING ERROR (any case); kUsage otherwise
//   process    shown in each line: "fleetrun", "rank 3"
void set_up_logging(const std::string& level, const std::string& process);

// No line is logged while one exists in any thread.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
};

}  // namespace fleet
