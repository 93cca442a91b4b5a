#include "launch/planning/log_config.h"

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/log_settings.h"
#include "launch/planning/torchrun/translate.h"

namespace fleet {
namespace {

Sourced<int64_t> read_size(const Settings& settings, const char* key) {
  Sourced<int64_t> size{0, settings.origin(key)};
  if (!size.given()) return size;
  if (!parse_size(settings.text(key), &size.value) || size.value < kMinLogSize) {
    throw Error(ErrorCode::kUsage, "'" + settings.text(key) + "' is not a size of at least 64K",
                size.origin, "write it like 500M or 2G");
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

}  // namespace

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
  logs.shows_start = !is_torchrun_mode(settings) || settings.given("table");
  logs.table = read_table(settings.text("table"));
  return logs;
}

}  // namespace fleet
