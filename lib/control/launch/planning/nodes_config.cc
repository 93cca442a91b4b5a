#include "launch/planning/nodes_config.h"

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/options.h"

namespace fleet {
namespace {

[[noreturn]] void usage(const std::string& what, const std::string& where,
                        const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

MasterAddress parse_master(const std::string& text, const std::string& where) {
  const std::string example = "write it like --master=10.0.0.1:6768";
  if (text.find("://") != std::string::npos) {
    usage("only the built-in rendezvous is supported", where, example);
  }
  const size_t colon = text.rfind(':');
  const bool bare_ipv6 = text.find(':') != colon && !text.starts_with('[');
  MasterAddress master{text, 0};
  if (colon != std::string::npos && !bare_ipv6 && !text.ends_with(']')) {
    long long port = 0;
    if (!parse_int(std::string_view(text).substr(colon + 1), &port) || port < 1 || port > 65535) {
      usage("the port is not a number from 1 to 65535", where, example);
    }
    master = {text.substr(0, colon), static_cast<int>(port)};
  }
  if (master.address.starts_with('[') && master.address.ends_with(']')) {
    master.address = master.address.substr(1, master.address.size() - 2);
  }
  if (master.address.empty()) usage("the address is missing", where, example);
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

Sourced<std::optional<int>> read_port(const Settings& settings, const char* key) {
  Sourced<std::optional<int>> port{std::nullopt, settings.origin(key)};
  if (port.given()) port.value = static_cast<int>(settings.integer(key));
  return port;
}

Sourced<std::optional<int>> read_rendezvous_port(
    const Settings& settings, const Sourced<std::optional<MasterAddress>>& master) {
  Sourced<std::optional<int>> port = read_port(settings, "rdzv_port");
  const int of_master = master.value ? master.value->port : 0;
  if (of_master == 0) return port;
  if (port.value.value_or(0) > 0 && *port.value != of_master) {
    usage("it contradicts --master", port.with(std::to_string(*port.value)),
          "give the port in only one of them");
  }
  if (!port.given()) port = {of_master, master.origin};
  return port;
}

}  // namespace

NodesConfig read_nodes_config(const Settings& settings, const Roles& roles) {
  NodesConfig nodes;
  nodes.master = read_master(settings);
  nodes.listed = read_listed(settings, roles);
  nodes.count = sourced(settings, "nnodes", read_node_count(settings));
  nodes.host = sourced(settings, "host", settings.text("host"));
  nodes.rank.origin = settings.origin("rank");
  const auto rank = static_cast<int>(settings.integer("rank"));
  if (rank >= 0) nodes.rank.value = rank;
  nodes.rendezvous_port = read_rendezvous_port(settings, nodes.master);
  nodes.start_port = read_port(settings, "start_port");
  nodes.master_port = static_cast<int>(settings.integer("master_port"));
  if (!nodes.several_counted()) return nodes;
  nodes.master_port = 0;  // it is the port of the rendezvous
  if (given_by_flag(settings, "sort_ip") && settings.boolean("sort_ip")) {
    usage("nodes without a list get their ranks from --rank, or by arrival", "--sort_ip",
          "list them with --ips, or leave it out");
  }
  return nodes;
}

}  // namespace fleet
