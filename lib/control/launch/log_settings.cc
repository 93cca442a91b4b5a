#include "launch/log_settings.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "launch/shown_ranks.h"
#include "node/console.h"
#include "node/log_rotation.h"

namespace fleet {
namespace {

constexpr int64_t kMinSize = 64 << 10;
// How long a line waits for equal lines of other ranks; too short to notice.
constexpr int kCollapseMs = 200;

int64_t size_of(const Settings& settings, const char* key) {
  if (!settings.given(key)) return 0;
  int64_t size = 0;
  if (!parse_size(settings.text(key), &size) || size < kMinSize) {
    throw Error(ErrorCode::kUsage, "'" + settings.text(key) + "' is not a size of at least 64K",
                settings.origin(key), "write it like 500M or 2G");
  }
  return size;
}

struct Sizes {
  int64_t max_size = 0, total_size = 0;
};

// Open files cannot be removed, so all of them at full size must fit.
Sizes sizes_of(const Settings& settings, int local_world_size) {
  Sizes sizes{size_of(settings, "log_max_size"), size_of(settings, "log_total_size")};
  if (sizes.total_size == 0) return sizes;
  const int64_t files = std::max(local_world_size, 1) * (settings.boolean("log_split") ? 2 : 1);
  if (sizes.max_size == 0) {
    sizes.max_size = std::max(kMinSize, sizes.total_size / files / 2 - kLongestLogLine);
  }
  const int64_t least = files * (sizes.max_size + kLongestLogLine);
  if (sizes.total_size < least) {
    throw Error(
        ErrorCode::kUsage,
        "it is too small for " + std::to_string(files) + " logs of " +
            std::to_string(sizes.max_size >> 10) + "K",
        settings.origin("log_total_size") + " " + settings.text("log_total_size"),
        "give at least " + std::to_string((least + 1023) >> 10) + "K, or a smaller --log_max_size");
  }
  return sizes;
}

}  // namespace

void check_log_settings(const Settings& settings, int local_world_size) {
  sizes_of(settings, local_world_size);
}

bool stamps_console(const Settings& settings) {
  const std::string& where = settings.text("timestamps");
  return where == "console" || where == "all";
}

wire::LogSettings log_settings(const Settings& settings, const Assignment& assignment,
                               const wire::SpawnRanks& spawn) {
  wire::LogSettings logs;
  const auto shown =
      std::count_if(spawn.ranks().begin(), spawn.ranks().end(),
                    [](const wire::RankCommand& rank) { return rank.shown_streams() != 0; });
  const auto set_stream = [&](int fd, wire::ConsoleStream* stream) {
    const bool terminal = ::isatty(fd) == 1;
    const auto wanted = [&](const char* key, const char* yes) {
      return settings.text(key) == yes || (settings.text(key) == "auto" && terminal);
    };
    const bool own_labels = settings.given("log_line_prefix_template");
    const bool collapses = shown > 1 && !own_labels && wanted("collapse", "on");
    stream->set_drop(wanted("slow_console", "drop"));
    if (collapses) stream->set_collapse_ms(kCollapseMs);
  };
  const std::string& stamped = settings.text("timestamps");
  logs.set_overwrite(settings.boolean("log_overwrite"));
  logs.set_stamp_console(stamps_console(settings));
  logs.set_stamp_files(stamped == "files" || stamped == "all");
  logs.set_labels(read_shown_ranks(settings).chosen);
  if (assignment.nnodes() > 1) logs.set_node(assignment.node().address);
  set_stream(STDOUT_FILENO, logs.mutable_output());
  set_stream(STDERR_FILENO, logs.mutable_errors());
  logs.set_errors_apart(!same_destination(STDOUT_FILENO, STDERR_FILENO));
  const Sizes sizes = sizes_of(settings, spawn.ranks_size());
  logs.set_max_size(sizes.max_size);
  logs.set_total_size(sizes.total_size);
  return logs;
}

}  // namespace fleet
