#include <string_view>

#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/options.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

constexpr int kMaxNodes = 65536;
constexpr int kElasticRestarts = 3;  // Paddle's default
constexpr int kReplacements = 3;

[[noreturn]] void not_a_count(const Settings& settings) {
  refuse("'" + settings.text("nnodes") + "' is not a number of nodes", settings.origin("nnodes"),
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

MasterAddress parse_master(const std::string& text, const std::string& where) {
  const std::string example = "write it like --master=10.0.0.1:6768";
  if (text.find("://") != std::string::npos) {
    refuse("only the built-in rendezvous is supported", where, example);
  }
  const HostPort parts = split_endpoint(text);
  MasterAddress master{parts.host, 0};
  if (parts.port && !parse_port(*parts.port, 1, &master.port)) {
    refuse("the port is not a number from 1 to 65535", where, example);
  }
  if (master.address.empty()) refuse("the address is missing", where, example);
  return master;
}

Sourced<std::optional<MasterAddress>> read_master(const Settings& settings) {
  const std::string& text = settings.text("master");
  Sourced<std::optional<MasterAddress>> master{std::nullopt, settings.origin("master")};
  // With --via, the environment applies to the client.
  const bool ignored = !settings.text("via").empty() && !master.by_flag();
  if (!text.empty() && !ignored) master.value = parse_master(text, master.with(text));
  return master;
}

Sourced<std::vector<ListedNode>> read_listed(const Settings& settings, const Roles& roles) {
  if (roles.listed()) return sourced(settings, "servers", roles.nodes());
  std::vector<ListedNode> nodes =
      expand_nodes(join(settings.texts("ips"), ","), settings.origin("ips"));
  if (settings.boolean("sort_ip")) sort_by_address(&nodes);
  return sourced(settings, "ips", std::move(nodes));
}

Sourced<std::optional<int>> read_rendezvous_port(
    const Settings& settings, const Sourced<std::optional<MasterAddress>>& master) {
  Sourced<std::optional<int>> port = sourced_integer(settings, "rdzv_port");
  const int of_master = master.value ? master.value->port : 0;
  if (of_master == 0) return port;
  if (port.value.value_or(0) > 0 && *port.value != of_master) {
    refuse("it contradicts --master", port.with(std::to_string(*port.value)),
           "give the port in only one of them");
  }
  if (!port.given()) port = {of_master, master.origin};
  return port;
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
    refuse("it contradicts --max_restart " + std::to_string(count),
           "--elastic_level " + std::to_string(level), "give only one of them");
  }
  if (count_is_flag != level_is_flag) return count_is_flag ? "elastic_level" : "max_restart";
  return level < 0 ? "max_restart" : "elastic_level";
}

RestartPolicy read_restart_policy(const Settings& settings) {
  const auto level = settings.integer("elastic_level");
  if (level == 0) {
    refuse("level 0 (a failed node ends, the others wait forever) is not supported",
           settings.origin("elastic_level"),
           "use --elastic_level=1: the job restarts, and waits --elastic_timeout for nodes");
  }
  RestartPolicy policy;
  policy.max_restarts = restarts_wanted(settings, level);
  const bool says = settings.given("max_restart") || settings.given("elastic_level");
  policy.max_replacements = says || policy.max_restarts > 0 ? policy.max_restarts : kReplacements;
  policy.no_progress_restarts = static_cast<int>(settings.integer("no_progress_restarts"));
  policy.elastic_timeout =
      std::chrono::milliseconds(static_cast<int64_t>(settings.number("elastic_timeout") * 1000));
  return policy;
}

NodesConfig read_nodes_config(const Settings& settings, const Roles& roles) {
  NodesConfig nodes;
  nodes.master = read_master(settings);
  nodes.listed = read_listed(settings, roles);
  nodes.count = sourced(settings, "nnodes", read_node_count(settings));
  nodes.host = sourced(settings, "host", settings.text("host"));
  nodes.reached_at = settings.text("local_addr");
  nodes.rank = sourced_integer(settings, "rank");
  nodes.rendezvous_port = read_rendezvous_port(settings, nodes.master);
  nodes.start_port = sourced_integer(settings, "start_port");
  nodes.master_port = static_cast<int>(settings.integer("master_port"));
  if (!nodes.several_counted()) return nodes;
  nodes.master_port = 0;  // it is the port of the rendezvous
  if (given_by_flag(settings, "sort_ip") && settings.boolean("sort_ip")) {
    refuse("nodes without a list get their ranks from --rank, or by arrival", "--sort_ip",
           "list them with --ips, or leave it out");
  }
  return nodes;
}

}  // namespace fleet
