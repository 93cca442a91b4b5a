#include "launch/planning/log_settings.h"

#include <unistd.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "node/console.h"
#include "node/log_rotation.h"

namespace fleet {
namespace {

// How long a line waits for equal lines of other ranks; too short to notice.
constexpr int kCollapseMs = 200;

struct Sizes {
  int64_t max_size = 0, total_size = 0;
};

// Open files cannot be removed, so all of them at full size must fit.
Sizes sizes_of(const LogConfig& config, int local_world_size) {
  Sizes sizes{config.max_size.value, config.total_size.value};
  if (sizes.total_size == 0) return sizes;
  const int64_t files = std::max(local_world_size, 1) * (config.split ? 2 : 1);
  if (sizes.max_size == 0) {
    sizes.max_size = std::max(kMinLogSize, sizes.total_size / files / 2 - kLongestLogLine);
  }
  const int64_t least = files * (sizes.max_size + kLongestLogLine);
  if (sizes.total_size < least) {
    throw Error(
        ErrorCode::kUsage,
        "it is too small for " + counted(files, "log") + " of " +
            std::to_string(sizes.max_size >> 10) + "K",
        config.total_size.with(std::to_string(sizes.total_size >> 10) + "K"),
        "give at least " + std::to_string((least + 1023) >> 10) + "K, or a smaller --log_max_size");
  }
  return sizes;
}

}  // namespace

void check_log_settings(const LogConfig& config, int local_world_size) {
  sizes_of(config, local_world_size);
}

wire::LogSettings log_settings(const LogConfig& config, const Assignment& assignment,
                               const wire::SpawnRanks& spawn) {
  wire::LogSettings logs;
  const auto shown =
      std::count_if(spawn.ranks().begin(), spawn.ranks().end(),
                    [](const wire::RankCommand& rank) { return rank.shown_streams() != 0; });
  const auto set_stream = [&](int fd, wire::ConsoleStream* stream) {
    const bool terminal = ::isatty(fd) == 1;
    const auto is_on = [&](Switch wanted) {
      return wanted == Switch::kOn || (wanted == Switch::kAuto && terminal);
    };
    const bool collapses = shown > 1 && !config.label && is_on(config.collapse);
    stream->set_drop(is_on(config.drop_if_slow));
    if (collapses) stream->set_collapse_ms(kCollapseMs);
  };
  logs.set_overwrite(config.overwrite);
  logs.set_stamp_console(config.stamp_console);
  logs.set_stamp_files(config.stamp_files);
  logs.set_labels(config.shown.chosen);
  if (assignment.nnodes() > 1) logs.set_node(assignment.node().address);
  set_stream(STDOUT_FILENO, logs.mutable_output());
  set_stream(STDERR_FILENO, logs.mutable_errors());
  logs.set_errors_apart(!same_destination(STDOUT_FILENO, STDERR_FILENO));
  const Sizes sizes = sizes_of(config, spawn.ranks_size());
  logs.set_max_size(sizes.max_size);
  logs.set_total_size(sizes.total_size);
  return logs;
}

}  // namespace fleet
