// The options about output and logs, resolved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/planning/shown_ranks.h"
#include "launch/planning/sourced.h"

namespace fleet {

enum class Switch { kAuto, kOn, kOff };  // kAuto: on a terminal
enum class TableStyle { kAuto, kPaddle, kNarrow, kNone };

struct LogConfig {
  Sourced<std::string> folder;  // --log_dir: the log folder, or with --compat=torchrun its parent
  bool split = false;           // standard error in a file of its own
  bool overwrite = false;
  Sourced<int64_t> max_size, total_size;  // bytes; 0: unlimited
  bool stamp_console = false, stamp_files = false;
  Switch collapse = Switch::kAuto;
  Switch drop_if_slow = Switch::kAuto;  // drop lines that a slow console does not take
  ShownRanks shown;
  std::optional<std::string> label;  // --log_line_prefix_template
  // --duplicate_stdout_filters, --duplicate_stderr_filters: lines with these texts are copied.
  std::vector<std::string> output_filters, error_filters;
  std::string level;  // of fleetrun's own lines and for the ranks: DEBUG, INFO, WARNING, ERROR
  bool quiet = false;
  bool shows_start = true;  // print the configuration and the environment table
  TableStyle table = TableStyle::kAuto;

  // The level of fleetrun's own lines.
  std::string own_level() const { return quiet && level != "ERROR" ? "WARNING" : level; }
};

// Throws kUsage for an invalid value.
LogConfig read_log_config(const Settings& settings);

}  // namespace fleet
