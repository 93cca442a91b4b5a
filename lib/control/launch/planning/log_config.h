// The options about output and logs, resolved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/refuse.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {

// Streams of each local rank: bits of wire::RankCommand::Stream.
struct RankStreams {
  int others = 0;
  std::map<int, int> by_rank;
  bool any() const { return others != 0 || !by_rank.empty(); }
  int of(int local_rank) const {
    const auto found = by_rank.find(local_rank);
    return found == by_rank.end() ? others : found->second;
  }
};

struct ShownRanks {
  bool chosen = false;  // false: local rank 0 of each node, as in Paddle
  bool all = false;
  std::set<int> ranks, local_ranks;  // global ranks, and local ranks of each node
  RankStreams tee, redirects;        // streams by local rank
  RankStreams labels;                // streams whose lines have their rank as prefix

  bool shows(int rank, int local_rank) const {
    return chosen ? all || ranks.contains(rank) || local_ranks.contains(local_rank)
                  : local_rank == 0;
  }
  // The shown streams of a rank. As in torchrun: not redirected, or redirected and teed.
  int streams(int rank, int local_rank) const {
    const int wanted = tee.of(local_rank) | (3 & ~redirects.of(local_rank));
    return shows(rank, local_rank) ? wanted : 0;
  }
};

// Parses --ranks and --local_ranks_filter ("all", or numbers and ranges such as "0,3-5"), and --tee
// and --redirects ("3" or "0:1,2:3"). With only --tee or --redirects, all ranks are shown. Throws
// kUsage for an invalid value.
ShownRanks read_shown_ranks(const Settings& settings);

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

inline constexpr int64_t kMinLogSize = 64 << 10;  // bytes

// Throws kUsage if --log_total_size is too small for the logs of `local_world_size` ranks.
void check_log_settings(const LogConfig& config, int local_world_size);

// `spawn`: has the ranks of this node.
wire::LogSettings log_settings(const LogConfig& config, const Assignment& assignment,
                               const wire::SpawnRanks& spawn);

}  // namespace fleet
