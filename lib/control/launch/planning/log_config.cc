#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/counted.h"
#include "base/ranges.h"
#include "base/text.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/refuse.h"
#include "launch/planning/torchrun/translate.h"
#include "node/console.h"
#include "node/log_file.h"

namespace fleet {
namespace {

void read_list(const Settings& settings, const char* key, ShownRanks* shown,
               std::set<int>* numbers) {
  if (!settings.given(key)) return;
  shown->chosen = true;
  for (const std::string& part : split(settings.text(key), ',')) {
    if (part == "all") {
      shown->all = true;
      continue;
    }
    long long first = 0, last = 0;
    if (!parse_range(part, &first, &last) || first < 0 || last - first > 1'000'000) {
      refuse("'" + part + "' is neither a rank nor a range of ranks", settings.origin(key),
             "write it like 0,3-5, or all");
    }
    for (long long rank = first; rank <= last; ++rank) numbers->insert(static_cast<int>(rank));
  }
}

// torchrun's notation: 0 (none), 1, 2 or 3 for all ranks, or for some: "0:1,2:3".
RankStreams read_streams(const Settings& settings, const char* key) {
  RankStreams streams;
  if (!settings.given(key)) return streams;
  const auto wrong = [&](const std::string& part) {
    refuse("'" + part + "' is not a choice of streams", settings.origin(key),
           "use 1 for standard output, 2 for standard error, 3 for both, or by local rank 0:3,2:1");
  };
  const std::vector<std::string> parts = split(settings.text(key), ',');
  for (const std::string& part : parts) {
    const size_t colon = part.find(':');
    const bool of_rank = colon != std::string::npos;
    long long rank = 0, which = 0;
    if (!parse_int(part.substr(of_rank ? colon + 1 : 0), &which) || which < 0 || which > 3 ||
        (of_rank && (!parse_int(part.substr(0, colon), &rank) || rank < 0 || rank > 1 << 20)) ||
        (!of_rank && parts.size() > 1)) {
      wrong(part);
    }
    (of_rank ? streams.by_rank[static_cast<int>(rank)] : streams.others) = static_cast<int>(which);
  }
  return streams;
}

Sourced<int64_t> read_size(const Settings& settings, const char* key) {
  Sourced<int64_t> size{0, settings.origin(key)};
  if (!size.given()) return size;
  if (!parse_size(settings.text(key), &size.value) || size.value < kMinLogSize) {
    refuse("'" + settings.text(key) + "' is not a size of at least 64K", size.origin,
           "write it like 500M or 2G");
  }
  return size;
}

Switch read_switch(const Settings& settings, const char* key, const char* on) {
  const std::string& text = settings.text(key);
  return text == "auto" ? Switch::kAuto : text == on ? Switch::kOn : Switch::kOff;
}

// "apple,orange": two texts; ",," is a comma.
std::vector<std::string> read_filters(const std::string& text) {
  if (text.empty()) return {};
  std::vector<std::string> filters(1);
  for (size_t at = 0; at < text.size(); ++at) {
    const bool comma = text[at] == ',';
    if (comma && at + 1 < text.size() && text[at + 1] == ',') {
      filters.back() += text[at++];
    } else if (comma) {
      filters.emplace_back();
    } else {
      filters.back() += text[at];
    }
  }
  return filters;
}

TableStyle read_table(const std::string& text) {
  return text == "paddle"   ? TableStyle::kPaddle
         : text == "narrow" ? TableStyle::kNarrow
         : text == "none"   ? TableStyle::kNone
                            : TableStyle::kAuto;
}

// How long a line waits for identical lines of other ranks; too short to notice.
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
    refuse(
        "it is too small for " + counted(files, "log") + " of " +
            std::to_string(sizes.max_size >> 10) + "K",
        config.total_size.with(std::to_string(sizes.total_size >> 10) + "K"),
        "give at least " + std::to_string((least + 1023) >> 10) + "K, or a smaller --log_max_size");
  }
  return sizes;
}

}  // namespace

ShownRanks read_shown_ranks(const Settings& settings) {
  ShownRanks shown;
  read_list(settings, "ranks", &shown, &shown.ranks);
  read_list(settings, "local_ranks_filter", &shown, &shown.local_ranks);
  const bool as_torchrun = is_torchrun_mode(settings);
  const bool streams = settings.given("tee") || settings.given("redirects");
  if ((streams || as_torchrun) && !shown.chosen) shown.chosen = shown.all = true;
  shown.tee = read_streams(settings, "tee");
  shown.redirects = read_streams(settings, "redirects");
  shown.labels = as_torchrun ? shown.tee : RankStreams{shown.chosen ? 3 : 0, {}};
  return shown;
}

LogConfig read_log_config(const Settings& settings) {
  LogConfig logs;
  logs.folder = sourced(settings, "log_dir", settings.text("log_dir"));
  logs.split = settings.boolean("log_split");
  logs.overwrite = settings.boolean("log_overwrite");
  logs.max_size = read_size(settings, "log_max_size");
  logs.total_size = read_size(settings, "log_total_size");
  const std::string& stamped = settings.text("timestamps");
  logs.stamp_console = stamped == "console" || stamped == "all";
  logs.stamp_files = stamped == "files" || stamped == "all";
  logs.collapse = read_switch(settings, "collapse", "on");
  logs.drop_if_slow = read_switch(settings, "slow_console", "drop");
  logs.shown = read_shown_ranks(settings);
  if (settings.given("log_line_prefix_template")) {
    logs.label = settings.text("log_line_prefix_template");
  }
  logs.output_filters = read_filters(settings.text("duplicate_stdout_filters"));
  logs.error_filters = read_filters(settings.text("duplicate_stderr_filters"));
  logs.level = settings.text("log_level");
  logs.quiet = settings.boolean("quiet");
  logs.table = read_table(settings.text("table"));
  return logs;
}

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
  if (assignment.nnodes() > 1) logs.set_node(assignment.node().address());
  set_stream(STDOUT_FILENO, logs.mutable_output());
  set_stream(STDERR_FILENO, logs.mutable_errors());
  logs.set_errors_apart(!same_destination(STDOUT_FILENO, STDERR_FILENO));
  const Sizes sizes = sizes_of(config, spawn.ranks_size());
  logs.set_max_size(sizes.max_size);
  logs.set_total_size(sizes.total_size);
  return logs;
}

}  // namespace fleet
