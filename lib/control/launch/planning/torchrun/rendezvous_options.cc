#include <algorithm>

#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/refuse.h"
#include "launch/planning/torchrun/translate.h"

namespace fleet {
namespace {

constexpr int kEndpointPort = 29400, kMasterPort = 29500;  // torchrun's

// "" if not given.
std::string given(const ConfigTree& tree, const char* key) { return tree.peek(key).value_or(""); }

bool is_on(const ConfigTree& tree, const char* key) { return given(tree, key) == "true"; }

bool several_nodes(const ConfigTree& tree) {
  const std::string count = given(tree, "nnodes");  // perhaps a range
  long long most = 1;
  parse_int(std::string_view(count).substr(count.find(':') + 1), &most);
  return most > 1;
}

struct Endpoint {
  std::string address;
  int port = -1;  // -1: not given
};

// Parses "host", "host:29400" and "[::1]:0" like torchrun.
Endpoint parse_endpoint(const std::string& text, const std::string& origin) {
  const std::string where = origin + " " + text, next = "write it like node1:29400";
  if (text.find("://") != std::string::npos) refuse("a URL is not a node address", where, next);
  Endpoint endpoint{text};
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && !text.ends_with(']')) {
    endpoint.address = text.substr(0, colon);
    if (!parse_port(text.substr(colon + 1), 0, &endpoint.port)) {
      refuse("the port is not a number from 0 to 65535", where, next);
    }
  }
  if (endpoint.address.empty()) refuse("the address is missing", where, next);
  return endpoint;
}

bool is_etcd(const std::string& backend) {
  return backend == "etcd" || backend == "etcd-v2" || backend == "etcd-experimental";
}

void check_backend(const ConfigTree& tree) {
  const std::string backend = given(tree, "rdzv_backend");
  if (backend.empty() || backend == "c10d" || backend == "static" || is_etcd(backend)) return;
  refuse("unknown rendezvous backend '" + backend + "'", tree.origin("rdzv_backend"),
         "leave it out: the rendezvous is built in (c10d, static and etcd are accepted too)");
}

void set_master(ConfigTree* tree, const Endpoint& endpoint, int port, const std::string& origin) {
  if (endpoint.port == 0) {
    refuse("port 0 means any free port, which other nodes cannot know",
           origin + " " + endpoint.address + ":0",
           "give a port, or use --nnodes=1 for a single node");
  }
  // An IPv6 address has brackets in an endpoint, and none in --master_addr.
  const bool bare = endpoint.address.find(':') != std::string::npos && endpoint.address[0] != '[';
  const std::string host = bare ? "[" + endpoint.address + "]" : endpoint.address;
  const std::string master = host + ":" + std::to_string(endpoint.port > 0 ? endpoint.port : port);
  const auto other = tree->peek("master");
  if (other && *other != master) {
    refuse("it contradicts " + tree->origin("master") + " " + *other, origin + " " + master,
           "give only one of them");
  }
  tree->set("master", master, origin);
}

// The rendezvous address is --rdzv_endpoint, else --master_addr and --master_port.
void translate_endpoint(ConfigTree* tree) {
  const std::string backend = given(*tree, "rdzv_backend");
  std::string endpoint = is_etcd(backend) ? std::string() : given(*tree, "rdzv_endpoint");
  const std::string address = given(*tree, "master_addr"), port = given(*tree, "master_port");
  const bool listed = tree->peek("ips").has_value();
  if (!several_nodes(*tree) || listed) {
    // c10d chooses MASTER_PORT itself; the static rendezvous uses the given port.
    if (!endpoint.empty() && backend != "c10d") {
      const Endpoint master = parse_endpoint(endpoint, tree->origin("rdzv_endpoint"));
      if (master.port > 0 && port.empty()) {
        tree->set("master_port", std::to_string(master.port), tree->origin("rdzv_endpoint"));
      }
    }
    if (!address.empty() && !listed && !tree->peek("master")) {
      tree->set("master", address, tree->origin("master_addr"));
    }
    return;
  }
  if (!endpoint.empty()) {
    const std::string origin = tree->origin("rdzv_endpoint");
    return set_master(tree, parse_endpoint(endpoint, origin), kEndpointPort, origin);
  }
  if (address.empty() && port.empty()) return;
  long long number = kMasterPort;
  if (!port.empty() && !parse_int(port, &number)) return;  // the schema rejects it
  const bool by_address = !address.empty();
  set_master(tree, {by_address ? address : "127.0.0.1", -1}, static_cast<int>(number),
             tree->origin(by_address ? "master_addr" : "master_port"));
}

void translate_standalone(ConfigTree* tree) {
  if (several_nodes(*tree)) {
    refuse("it contradicts --nnodes " + given(*tree, "nnodes"), tree->origin("standalone"),
           "leave one of them out");
  }
  // As in torchrun, ignore all other rendezvous options.
  for (const char* key : {"rdzv_endpoint", "rdzv_backend", "master_addr", "master_port"}) {
    tree->remove(key);
  }
}

// --- entries of --rdzv_conf ---

// Parses a duration of --rdzv_conf; `where` names the key.
double seconds_of(const std::string& value, const std::string& where) {
  double seconds = 0;
  if (!parse_double(value, &seconds) || seconds <= 0) {
    refuse("'" + value + "' is not a number of seconds", where, "write it like 600");
  }
  return seconds;
}

void set_where_not_given(ConfigTree* tree, const char* key, const std::string& value,
                         const std::string& origin) {
  const std::string before = tree->origin(key);
  if (before.empty() || !before.starts_with("--")) tree->set(key, value, origin);
}

bool may_restart(const ConfigTree& tree) {
  const std::string nodes = given(tree, "nnodes"), restarts = given(tree, "max_restart");
  const size_t colon = nodes.find(':');
  const bool range =
      colon != std::string::npos && nodes.substr(0, colon) != nodes.substr(colon + 1);
  return range || (!restarts.empty() && restarts != "0");
}

void translate_is_host(ConfigTree* tree, const std::string& value, const std::string& where) {
  std::string text = value;
  std::transform(text.begin(), text.end(), text.begin(), ::tolower);
  const bool yes = text == "1" || text == "true" || text == "t" || text == "yes" || text == "y";
  const bool no = text == "0" || text == "false" || text == "f" || text == "no" || text == "n";
  if (!yes && !no) refuse("'" + value + "' is neither true nor false", where, "write 1 or 0");
  // Node 0 hosts the rendezvous.
  if (yes && several_nodes(*tree)) set_where_not_given(tree, "rank", "0", where);
}

struct KeepAlive {
  double interval = 5, attempts = 3;
  bool given = false;
};

void translate_conf_entry(const std::string& key, const std::string& value, ConfigTree* tree,
                          KeepAlive* keep_alive, std::vector<IgnoredFlag>* ignored) {
  const std::string where = tree->origin("rdzv_conf") + " " + key;
  if (key == "timeout" || key == "join_timeout") {
    seconds_of(value, where);
    set_where_not_given(tree, "rdzv_timeout", value, where);
  } else if (key == "last_call_timeout" && may_restart(*tree)) {
    seconds_of(value, where);
    set_where_not_given(tree, "elastic_timeout", value, where);
  } else if (key == "keep_alive_interval" || key == "keep_alive_max_attempt") {
    (key == "keep_alive_interval" ? keep_alive->interval : keep_alive->attempts) =
        seconds_of(value, where);
    keep_alive->given = true;
  } else if (key == "is_host") {
    translate_is_host(tree, value, where);
  } else {
    ignored->push_back({"--rdzv_conf " + key, "for another rendezvous"});
  }
}

void translate_conf(ConfigTree* tree, std::vector<IgnoredFlag>* ignored) {
  const std::string conf = given(*tree, "rdzv_conf"), origin = tree->origin("rdzv_conf");
  if (trim(conf).empty()) return;
  KeepAlive keep_alive;
  for (const std::string& part : split(conf, ',')) {
    const size_t equals = part.find('=');
    const std::string key(trim(std::string_view(part).substr(0, equals)));
    const std::string value(
        equals == std::string::npos ? "" : trim(std::string_view(part).substr(equals + 1)));
    if (key.empty() || value.empty()) {
      refuse("'" + part + "' is not KEY=VALUE", origin, "write it like join_timeout=600");
    }
    translate_conf_entry(key, value, tree, &keep_alive, ignored);
  }
  if (!keep_alive.given) return;
  set_where_not_given(tree, "heartbeat_timeout",
                      std::to_string(keep_alive.interval * keep_alive.attempts), origin);
}

}  // namespace

void translate_rendezvous(ConfigTree* tree, std::vector<IgnoredFlag>* ignored) {
  if (is_on(*tree, "standalone")) translate_standalone(tree);
  check_backend(*tree);
  const std::string backend = given(*tree, "rdzv_backend");
  if (is_etcd(backend)) {
    ignored->push_back(
        {"--rdzv_backend " + backend, "the rendezvous is built in and needs no etcd"});
  }
  translate_endpoint(tree);
  translate_conf(tree, ignored);
}

// As torchrun, which takes c10d for a single node unless a port or an endpoint is given.
static bool is_static(const ConfigTree& tree, bool standalone) {
  const std::string backend = given(tree, "rdzv_backend");
  if (!backend.empty() || standalone) return backend == "static";
  const bool placed = tree.peek("master_port") || tree.peek("rdzv_endpoint");
  return placed || several_nodes(tree);
}

// Whether this node has rank 0 and hosts the rendezvous.
static bool is_node_zero(const TorchrunMachine& machine, const ConfigTree& tree) {
  if (!several_nodes(tree)) return true;
  const std::string rank = given(tree, "rank"), master = given(tree, "master");
  if (!rank.empty()) return rank == "0";
  return !master.empty() && machine.is_local(split_endpoint(master).host);
}

void translate_local_address(const TorchrunMachine& machine, ConfigTree* tree,
                             std::vector<IgnoredFlag>* ignored) {
  const std::string address = given(*tree, "local_addr"), origin = tree->origin("local_addr");
  if (address.empty()) return;
  const bool elsewhere = !given(*tree, "via").empty();
  const bool is_ours = elsewhere || tree->peek("ips") || machine.is_local(address);
  if (is_ours) {
    if (tree->peek("host").value_or(address) != address && tree->origin("host") == "--host") {
      refuse("it contradicts --host " + given(*tree, "host"), origin + " " + address,
             "give only one of them");
    }
    tree->set("host", address, origin);
  } else if (is_static(*tree, is_on(*tree, "standalone"))) {
    ignored->push_back({origin, "a static rendezvous uses only the address of the master"});
  } else if (!is_node_zero(machine, *tree)) {
    ignored->push_back({origin, "it is not this host's, and only node 0 tells ranks an address"});
  } else {
    return;
  }
  tree->remove("local_addr");
}

}  // namespace fleet
