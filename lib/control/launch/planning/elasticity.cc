#include "launch/planning/elasticity.h"

#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/options.h"

namespace fleet {
namespace {

constexpr int kMaxNodes = 65536;
constexpr int kElasticRestarts = 3;  // Paddle's default

[[noreturn]] void not_a_count(const Settings& settings) {
  throw Error(ErrorCode::kUsage, "'" + settings.text("nnodes") + "' is not a number of nodes",
              settings.origin("nnodes"),
              "give a number, as in --nnodes=4, or a minimum and a maximum, as in --nnodes=2:4");
}

int restarts_wanted(const Settings& settings, int64_t level) {
  const std::string overruled = overruled_by_elasticity(settings);
  if (settings.given("max_restart") && overruled != "max_restart") {
    return static_cast<int>(settings.integer("max_restart"));
  }
  const bool disabled = settings.given("elastic_level") && level < 0;
  const std::optional<NodeCount> count = read_node_count(settings);
  const bool elastic = level > 0 || (count && count->is_range() && !disabled);
  return elastic ? kElasticRestarts : 0;
}

}  // namespace

std::string NodeCount::text() const {
  return is_range() ? std::to_string(min) + ":" + std::to_string(max) : std::to_string(max);
}

std::optional<NodeCount> read_node_count(const Settings& settings) {
  const std::string& text = settings.text("nnodes");
  if (text.empty()) return std::nullopt;
  const size_t colon = text.find(':');
  long long min = 0, max = 0;
  const bool ok =
      parse_int(std::string_view(text).substr(0, colon), &min) &&
      (colon == std::string::npos || parse_int(std::string_view(text).substr(colon + 1), &max));
  if (colon == std::string::npos) max = min;
  if (!ok || min < 1 || max < min || max > kMaxNodes) not_a_count(settings);
  return NodeCount{static_cast<int>(min), static_cast<int>(max)};
}

std::string overruled_by_elasticity(const Settings& settings) {
  if (!settings.given("max_restart") || !settings.given("elastic_level")) return {};
  const auto count = settings.integer("max_restart"), level = settings.integer("elastic_level");
  if ((count > 0) == (level > 0)) return {};
  const bool count_is_flag = given_by_flag(settings, "max_restart");
  const bool level_is_flag = given_by_flag(settings, "elastic_level");
  if (count_is_flag && level_is_flag) {
    throw Error(ErrorCode::kUsage, "it contradicts --max_restart " + std::to_string(count),
                "--elastic_level " + std::to_string(level), "give only one of them");
  }
  if (count_is_flag != level_is_flag) return count_is_flag ? "elastic_level" : "max_restart";
  return level < 0 ? "max_restart" : "elastic_level";
}

RestartPolicy read_restart_policy(const Settings& settings) {
  const auto level = settings.integer("elastic_level");
  if (level == 0) {
    throw Error(ErrorCode::kUsage,
                "level 0 (a failed node ends, the others wait for ever) is not supported",
                settings.origin("elastic_level"),
                "use --elastic_level=1: the job restarts, and waits --elastic_timeout for nodes");
  }
  RestartPolicy policy;
  policy.max_restarts = restarts_wanted(settings, level);
  policy.no_progress_restarts = static_cast<int>(settings.integer("no_progress_restarts"));
  policy.elastic_timeout =
      std::chrono::milliseconds(static_cast<int64_t>(settings.number("elastic_timeout") * 1000));
  return policy;
}

}  // namespace fleet
