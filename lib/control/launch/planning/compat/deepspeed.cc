// Options of DeepSpeed's launcher. It shares --master_addr, --node_rank and others with torchrun.
// The options that choose nodes and GPUs depend on one another, so they are translated together.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/devices.h"
#include "launch/planning/node_list.h"

namespace fleet {
namespace {

// A node and its devices in use.
struct Resource {
  std::string node;
  int slots = 0;               // the number of GPUs, or of ranks without GPUs; 0: all of the node
  std::vector<int> gpus = {};  // those chosen by number
};
using Resources = std::vector<Resource>;

constexpr char kExample[] = "write it like worker-1@worker-2:0,2";

bool has_host_file(const CompatLine& line) { return line.has("--hostfile") || line.has("-H"); }

// "worker-1@worker-2:0,2": nodes, each with the GPUs that are named, ascending.
using Filter = std::vector<std::pair<std::string, std::set<int>>>;

auto find_node(Filter& filter, const std::string& node) {
  return std::ranges::find(filter, node, &Filter::value_type::first);
}

// nullopt if refused.
std::optional<Filter> read_filter(const std::string& value, CompatLine& line) {
  Filter filter;
  for (const std::string& entry : split(value, '@')) {
    const size_t colon = entry.find(':');
    const std::string node = entry.substr(0, colon);
    if (find_node(filter, node) == filter.end()) filter.push_back({node, {}});
    if (colon == std::string::npos) continue;
    for (const std::string& text : split(entry.substr(colon + 1), ',')) {
      long long number = 0;
      if (!parse_int(text, &number) || number < 0 || number > 4095) {
        line.refuse_without_correction("'" + text + "' is not the number of a GPU", kExample);
        return std::nullopt;
      }
      find_node(filter, node)->second.insert(static_cast<int>(number));
    }
  }
  return filter;
}

// The hosts of the host file, or those of --ips.
Resources listed_hosts(const CompatLine& line) {
  std::string list = line.own_option("ips").value_or("");
  for (const char* flag : {"--hostfile", "-H"}) {
    if (line.has(flag)) list = "@" + line.value_of(flag);
  }
  Resources hosts;
  for (const ListedNode& node : expand_nodes(list, "--hostfile")) {
    hosts.push_back({node.address, node.devices});
  }
  return hosts;
}

bool lacks(const Resource& host, const std::set<int>& gpus, CompatLine& line) {
  if (gpus.empty() || host.slots == 0 || *gpus.rbegin() < host.slots) return false;
  line.refuse_without_correction(host.node + " has no GPU " + std::to_string(*gpus.rbegin()) +
                                     ", but " + std::to_string(host.slots) + " slots",
                                 "GPUs are numbered from 0");
  return true;
}

bool has_host(const Resources& hosts, const std::string& node) {
  return std::ranges::find(hosts, node, &Resource::node) != hosts.end();
}

// Whether the filter names a node that is not among the hosts.
bool names_others(const Filter& filter, const Resources& hosts, CompatLine& line) {
  for (const auto& [node, gpus] : filter) {
    if (has_host(hosts, node)) continue;
    line.refuse_without_correction(node + " is not in the host file", kExample);
    return true;
  }
  return false;
}

// In the order of the hosts, as deepspeed numbers ranks. Without hosts, those that the filter
// names. nullopt if refused.
std::optional<Resources> included(Resources hosts, CompatLine& line) {
  line.act_for("--include");
  std::optional<Filter> wanted = read_filter(line.value_of("--include"), line);
  if (!wanted) return std::nullopt;
  if (hosts.empty()) {
    for (const auto& [node, gpus] : *wanted) hosts.push_back({node});
  }
  if (names_others(*wanted, hosts, line)) return std::nullopt;
  Resources chosen;
  for (Resource& host : hosts) {
    const auto found = find_node(*wanted, host.node);
    if (found == wanted->end()) continue;
    if (lacks(host, found->second, line)) return std::nullopt;
    host.gpus.assign(found->second.begin(), found->second.end());
    chosen.push_back(host);
  }
  return chosen;
}

// Removes GPUs of a host. nullopt if refused.
std::optional<Resource> without(Resource host, const std::set<int>& unwanted, CompatLine& line) {
  if (host.slots == 0 && is_this_host(host.node)) host.slots = find_gpus().count;
  if (host.slots == 0) {
    line.refuse_without_correction("the GPUs of " + host.node + " are not known",
                                   "give its slots in the host file, or choose GPUs with --gpus");
    return std::nullopt;
  }
  if (lacks(host, unwanted, line)) return std::nullopt;
  for (int gpu = 0; gpu < host.slots; ++gpu) {
    if (!unwanted.contains(gpu)) host.gpus.push_back(gpu);
  }
  return host;
}

// nullopt if refused.
std::optional<Resources> excluded(Resources hosts, CompatLine& line) {
  line.act_for("--exclude");
  std::optional<Filter> unwanted = read_filter(line.value_of("--exclude"), line);
  if (!unwanted) return std::nullopt;
  if (hosts.empty()) hosts = {{"localhost"}};
  if (names_others(*unwanted, hosts, line)) return std::nullopt;
  Resources left;
  for (const Resource& host : hosts) {
    const auto found = find_node(*unwanted, host.node);
    if (found == unwanted->end()) {
      left.push_back(host);
    } else if (!found->second.empty()) {
      const std::optional<Resource> rest = without(host, found->second, line);
      if (!rest) return std::nullopt;
      if (!rest->gpus.empty()) left.push_back(*rest);
    }
  }
  if (!left.empty()) return left;
  line.refuse_without_correction("it excludes every node", "list the nodes with --hostfile");
  return std::nullopt;
}

// The resources that pass the filters; nullopt if refused.
std::optional<Resources> filtered(Resources hosts, CompatLine& line) {
  for (const char* filter : {"--include", "--exclude"}) {
    for (const char* other : {"--num_gpus", "--num_nodes", "--exclude"}) {
      if (other == std::string_view(filter) || !line.has(filter) || !line.act_for(other)) continue;
      line.refuse_without_correction("it contradicts " + std::string(filter),
                                     "give only one of them");
      return std::nullopt;
    }
  }
  if (line.has("--include")) return included(std::move(hosts), line);
  if (line.has("--exclude")) return excluded(std::move(hosts), line);
  return hosts;
}

// --num_nodes takes the first hosts, --num_gpus the first GPUs of each.
void reduce(Resources* hosts, CompatLine& line) {
  long long count = 0;
  if (line.act_for("--num_gpus")) {
    const std::string gpus = line.value_of("--num_gpus");
    const bool listed = !hosts->empty() && parse_int(gpus, &count) && count > 0 && count < 4096;
    if (!listed) line.set_option("nproc_per_node", gpus);  // its own check reports errors
    for (Resource& host : *hosts) host.slots = static_cast<int>(count);
  }
  if (!line.act_for("--num_nodes")) return;
  const std::string nodes = line.value_of("--num_nodes");
  if (hosts->empty() || !parse_int(nodes, &count) || count < 1 ||
      static_cast<size_t>(count) > hosts->size()) {
    return line.override_option("nnodes", nodes);
  }
  hosts->resize(static_cast<size_t>(count));
}

// The ranks of this node.
void use_here(const Resource& host, CompatLine& line) {
  if (!host.gpus.empty()) {
    std::vector<std::string> numbers;
    for (const int gpu : host.gpus) numbers.push_back(std::to_string(gpu));
    if (!line.act_for("--include")) line.act_for("--exclude");
    return show_only_gpus(join(numbers, ","), line);
  }
  if (host.slots > 0) line.set_option("nproc_per_node", std::to_string(host.slots));
}

// fleetrun runs on each node, which knows its number.
void use_without_ssh(const Resources& hosts, CompatLine& line) {
  line.act_for("--no_ssh");
  long long rank = -1;
  parse_int(line.own_option("rank").value_or(""), &rank);
  if (rank < 0 || static_cast<size_t>(rank) >= hosts.size()) {
    return line.refuse_without_correction(
        "it needs the number of this node among " + std::to_string(hosts.size()) + " hosts",
        "give --node_rank");
  }
  line.set_option("nnodes", std::to_string(hosts.size()));
  use_here(hosts[static_cast<size_t>(rank)], line);
}

void use_over_ssh(const Resources& hosts, CompatLine& line) {
  const bool equal =
      std::ranges::all_of(hosts, [&](const Resource& host) { return host.gpus == hosts[0].gpus; });
  if (!equal) {
    return line.refuse_without_correction("it chooses different GPUs on different nodes",
                                          "start fleetrun on each node with its own --gpus");
  }
  std::vector<ListedNode> nodes;
  for (const Resource& host : hosts) {
    nodes.push_back({host.node, host.gpus.empty() ? host.slots : 0});
  }
  line.override_option("ips", list_text(nodes));
  if (!line.has_own_option("ips")) use_ssh(line);
  if (!hosts[0].gpus.empty()) use_here(hosts[0], line);
}

void choose_resources(CompatLine& line) {
  const bool filters = line.has("--include") || line.has("--exclude") || line.has("--num_nodes");
  if (!has_host_file(line) && !filters) {
    if (line.act_for("--num_gpus")) line.set_option("nproc_per_node", line.value_of("--num_gpus"));
    return;
  }
  std::optional<Resources> hosts = filtered(listed_hosts(line), line);
  if (!hosts) return;
  reduce(&*hosts, line);
  if (hosts->empty()) return;
  if (line.has("--no_ssh") && has_host_file(line)) return use_without_ssh(*hosts, line);
  const bool here = hosts->size() == 1 && is_this_host(hosts->front().node);
  here ? use_here(hosts->front(), line) : use_over_ssh(*hosts, line);
}

void translate_resources(CompatLine& line) {
  choose_resources(line);
  if (line.act_for("--ssh_port")) pass_to_ssh(line.value_of("--ssh_port"), line);
}

// A value of -i that is not the identity file of horovodrun, and one of -e that is not a file of
// srun.
bool names_no_file(const std::string& value) {
  std::error_code none;
  return value.find('/') == std::string::npos && !std::filesystem::exists(value, none);
}
bool names_gpus(const std::string& value) {
  const size_t colon = value.find(':');
  const bool numbered = colon != std::string::npos && colon + 1 < value.size() &&
                        value.find_first_not_of("0123456789,", colon + 1) == std::string::npos;
  return numbered || value.find('@') != std::string::npos;
}

}  // namespace

CompatGroup deepspeed_options() {
  CompatGroup group("deepspeed");
  group.abbreviates = true;
  group.together = translate_resources;
  const auto see_together = [](const std::string&, CompatLine&) {};
  group.translated({"--num_gpus", "--num_accelerators"}, "N", see_together);
  group.translated({"--include", "-i"}, "NODE:GPUS", see_together).when = names_no_file;
  group.translated({"--exclude", "-e"}, "NODE:GPUS", see_together).when = names_gpus;
  group.translated({"--num_nodes"}, "N", see_together);
  group.translated({"--no_ssh"}, "", see_together);
  group.sets({"--enable_each_rank_log"}, "DIR", "log_dir");
  group.sets({"--launcher_args"}, "TEXT", "via_options").late = true;
  group.ignored({"--no_local_rank"}, "", "ranks read it from LOCAL_RANK");
  group.ignored({"--no_ssh_check"}, "", "fleetrun names each node that it cannot reach");
  group.ignored({"--force_multi"}, "", "fleetrun starts one node like several");
  group.ignored({"--save_pid"}, "", "see fleetrun ls");
  const std::string cores = "fleetrun divides the cores of a node among its ranks";
  group.ignored({"--bind_cores_to_rank"}, "", cores);
  group.ignored({"--bind_core_list"}, "LIST", cores);
  group.refused({"--autotuning"}, "MODE", "fleetrun does not tune DeepSpeed's configuration",
                "run deepspeed --autotuning once");
  group.refused({"--venv_script"}, "FILE", "fleetrun sources no script on the nodes",
                "start fleetrun in that environment");
  for (const char* flag :
       {"--hostfile", "--master_port", "--master_addr", "--node_rank", "--launcher", "--ssh_port",
        "--module", "--no_python", "--log_level", "--quiet", "--help"}) {
    group.also({flag});
  }
  return group;
}

// Options that newer versions no longer have.
CompatGroup older_deepspeed_options() {
  CompatGroup group("deepspeed");
  const std::string elastic = "a job is elastic if --nnodes is a range";
  const std::string range = "give --nnodes=MIN:MAX on every node";
  group.refused({"--elastic_training"}, "", elastic, range);
  group.refused({"--min_elastic_nodes", "--max_elastic_nodes"}, "N", elastic, range);
  return group;
}

}  // namespace fleet
