#include <algorithm>

#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/options.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

constexpr const char* kOfThisMode[] = {"servers",   "workers",   "server_num",      "worker_num",
                                       "with_gloo", "gloo_port", "replace_trainers"};

// Parses "10.0.0.1:8000" or "[fd00::1]:8000"; the port is optional unless `needed`.
RoleEntry parse_entry(const std::string& text, bool needed, const std::string& where) {
  const std::string next = "write it like 10.0.0.1:8000,10.0.0.2:8000";
  const HostPort parts = split_endpoint(text);
  RoleEntry entry{parts.host, 0, 0};
  if (!parts.port && needed) refuse("'" + text + "' has no port", where, next);
  if (parts.port && !parse_port(*parts.port, 1, &entry.port)) {
    refuse("'" + text + "' has no port from 1 to 65535", where, next);
  }
  if (entry.address.empty()) refuse("an address is empty", where, next);
  return entry;
}

std::vector<RoleEntry> parse_list(const Settings& settings, const char* key, bool ports_needed) {
  std::vector<RoleEntry> entries;
  std::vector<std::string> seen;
  for (const std::string& text : settings.texts(key)) {
    if (long long number = 0; parse_int(text, &number)) {
      const std::string option = ports_needed ? "--server_num=" : "--worker_num=";
      refuse("'" + text + "' is a number, not an address", settings.origin(key),
             "write " + option + text + " for so many on each node");
    }
    entries.push_back(parse_entry(text, ports_needed, settings.origin(key)));
    entries.back().rank = static_cast<int>(entries.size()) - 1;
    if (entries.back().port > 0 && std::find(seen.begin(), seen.end(), text) != seen.end()) {
      refuse(text + " is listed twice", settings.origin(key), "give each its own port");
    }
    seen.push_back(text);
  }
  return entries;
}

void check_mode(const Settings& settings, const Roles& roles, const char* given) {
  if (roles.wanted) {
    for (const char* key : {"nproc_per_node", "ips"}) {
      const bool nodes_counted = std::string(key) == "ips" && !roles.listed();
      if (!settings.given(key) || nodes_counted) continue;
      refuse(roles.listed() && std::string(key) == "ips"
                 ? "--servers and --workers name the nodes"
                 : "it has no effect with parameter servers",
             settings.origin(key), "leave it out");
    }
  } else if (given) {
    refuse("it has no effect without parameter servers", settings.origin(given),
           "leave it out, or give --server_num and --worker_num");
  }
}

// --server_num and --worker_num apply to every node.
void check_numbers(const Settings& settings, const Roles& roles) {
  if (!roles.wanted || roles.listed()) return;
  for (const char* key : {"server_num", "worker_num"}) {
    if (!settings.given(key) || settings.integer(key) > 0) continue;
    refuse("each node needs at least one server and one trainer", settings.origin(key) + " 0",
           "use --servers and --workers to place them freely");
  }
  const std::string ips = join(settings.texts("ips"), ",");
  for (const ListedNode& node : expand_nodes(ips, settings.origin("ips"))) {
    if (node.devices == 0) continue;
    refuse("--server_num and --worker_num apply to every node",
           settings.origin("ips") + " " + node.address + ":" + std::to_string(node.devices),
           "leave the count out, or list --servers and --workers");
  }
}

}  // namespace

std::vector<ListedNode> Roles::nodes() const {
  std::vector<ListedNode> all;
  for (const auto* list : {&servers, &trainers}) {
    for (const RoleEntry& entry : *list) {
      const ListedNode node{entry.address, 0};
      if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
    }
  }
  return all;
}

std::string list_text(const std::vector<RoleEntry>& entries) {
  std::vector<std::string> texts;
  for (const RoleEntry& entry : entries) {
    texts.push_back(entry.port > 0 ? endpoint(entry.address, entry.port) : entry.address);
  }
  return join(texts, ",");
}

Roles read_roles(const Settings& settings) {
  Roles roles;
  const std::string& mode = settings.text("run_mode");
  if (mode != "collective" && mode != "ps") {
    refuse("'" + mode + "' is not supported", settings.origin("run_mode"),
           "the modes are collective and ps");
  }
  const char* given = nullptr;    // an option of parameter servers
  const char* implied = nullptr;  // an option that also selects the mode
  for (const char* key : kOfThisMode) {
    if (given_by_flag(settings, key)) given = key;
    const std::string name = key;
    const bool detail = name == "with_gloo" || name == "gloo_port" || name == "replace_trainers";
    if (settings.given(key) && !detail) implied = key;
  }
  if (implied && mode == "collective" && settings.given("run_mode")) {
    refuse("it contradicts " + settings.origin("run_mode") + " collective",
           settings.origin(implied), "give only one of them");
  }
  roles.wanted = mode == "ps" || implied != nullptr;
  roles.servers = parse_list(settings, "servers", true);
  roles.trainers = parse_list(settings, "workers", false);
  if (roles.servers.empty() != roles.trainers.empty()) {
    refuse(std::string("one list without the other: ") +
               (roles.servers.empty() ? "--servers" : "--workers") + " is missing",
           settings.origin(roles.servers.empty() ? "workers" : "servers"),
           "give both, or --server_num and --worker_num");
  }
  const std::string& replace = settings.text("replace_trainers");
  roles.replacement = replace == "always"  ? wire::RankCommand::ALWAYS
                      : replace == "never" ? wire::RankCommand::NEVER
                                           : wire::RankCommand::IF_IT_SAYS_SO;
  if (roles.listed() && (settings.given("server_num") || settings.given("worker_num"))) {
    refuse("lists and numbers contradict each other", settings.origin("servers"),
           "give --servers and --workers, or --server_num and --worker_num");
  }
  check_mode(settings, roles, given);
  check_numbers(settings, roles);
  if (roles.wanted && !roles.listed()) {
    roles.server_num = std::max(1, static_cast<int>(settings.integer("server_num")));
    roles.trainer_num = std::max(1, static_cast<int>(settings.integer("worker_num")));
  }
  roles.with_gloo = settings.text("with_gloo").front() - '0';
  roles.gloo_port = static_cast<int>(settings.integer("gloo_port"));
  return roles;
}

LocalRoles local_roles(const Roles& roles, const std::string& address) {
  LocalRoles local;
  if (!roles.listed()) {
    local.entries.resize(roles.server_num + roles.trainer_num);
    local.servers = roles.server_num;
    return local;
  }
  for (const auto* list : {&roles.servers, &roles.trainers}) {
    for (const RoleEntry& entry : *list) {
      if (entry.address == address) local.entries.push_back(entry);
    }
    if (list == &roles.servers) local.servers = static_cast<int>(local.entries.size());
  }
  return local;
}

}  // namespace fleet
