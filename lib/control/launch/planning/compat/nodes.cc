#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/node_list.h"
#include "launch/planning/topology.h"

namespace fleet {
namespace {

int sum_of(const std::vector<ListedNode>& nodes) {
  int sum = 0;
  for (const ListedNode& node : nodes) sum += node.devices;
  return sum;
}

// MPI launchers may list a host once per rank: "a,a,b".
std::vector<ListedNode> merged(const std::vector<ListedNode>& nodes) {
  std::vector<ListedNode> all;
  for (const ListedNode& node : nodes) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const ListedNode& other) {
      return other.address == node.address;
    });
    if (same == all.end()) {
      all.push_back(node);
    } else {
      same->devices = std::max(same->devices, 1) + std::max(node.devices, 1);
    }
  }
  const bool counted = sum_of(all) > 0;
  for (ListedNode& node : all) {
    if (counted) node.devices = std::max(node.devices, 1);  // one slot
  }
  return all;
}

void use_nodes(const std::vector<ListedNode>& nodes, CompatLine& line) {
  if (nodes.size() == 1 && is_this_host(nodes[0].address)) {
    const bool counted = nodes[0].devices > 0 && !gives_total_ranks(line);
    if (counted) line.set_option("nproc_per_node", std::to_string(nodes[0].devices));
    return;
  }
  line.set_option("ips", list_text(nodes));
  use_ssh(line);
}

// Fills nodes in order, as mpirun does.
std::vector<ListedNode> filled(std::vector<ListedNode> nodes, int total) {
  for (ListedNode& node : nodes) {
    node.devices = std::min(node.devices, total);
    total -= node.devices;
  }
  std::erase_if(nodes, [](const ListedNode& node) { return node.devices == 0; });
  return nodes;
}

void share_out(const std::string& value, int total, int nodes, CompatLine& line) {
  if (total % nodes == 0) {
    line.set_option("nproc_per_node", std::to_string(total / nodes));
    return;
  }
  line.refuse_without_correction("it is the total number of ranks, and " + value +
                                     " cannot be divided by " + std::to_string(nodes) + " nodes",
                                 "give counts by node: --nproc_per_node=N, or --ips=a:2,b:1");
}

// The number of nodes; -1 if --nnodes is a range.
int counted_nodes(const CompatLine& line) {
  const std::string text = line.own_option("nnodes").value_or("");
  long long nodes = 0;
  if (text.find(':') != std::string::npos) return -1;
  if (parse_int(text, &nodes) && nodes > 0 && nodes < 65536) return static_cast<int>(nodes);
  const auto step = get_env("SLURM_STEP_NUM_NODES");
  return step && parse_int(*step, &nodes) && nodes > 0 ? static_cast<int>(nodes) : 1;
}

// As the line says: -npernode, -N, ...; 0 if it does not.
int ranks_per_node(const CompatLine& line) {
  long long ranks = 0;
  const std::string text = line.own_option("nproc_per_node").value_or("");
  return parse_int(text, &ranks) && ranks > 0 && ranks < 65536 ? static_cast<int>(ranks) : 0;
}

// Places `each` ranks on a node, as long as there are any, as mpirun does.
void use_first_nodes(int total, int each, std::vector<ListedNode> nodes, CompatLine& line) {
  const size_t used = static_cast<size_t>(total / each);
  const bool fits = total % each == 0 && used <= nodes.size() &&
                    std::all_of(nodes.begin(), nodes.end(), [&](const ListedNode& node) {
                      return node.devices == 0 || node.devices >= each;
                    });
  if (!fits || (used < nodes.size() && line.has_own_option("ips"))) {
    return line.refuse_without_correction(
        "it is the total number of ranks, and the nodes do not take " + std::to_string(each) +
            " of them each",
        "give only the number for each node, or the counts: --ips=a:2,b:2");
  }
  if (line.has_own_option("ips")) return;
  nodes.resize(used);
  for (ListedNode& node : nodes) node.devices = std::min(node.devices, each);
  line.override_option("ips", list_text(nodes));
}

void distribute_over_listed(const std::string& value, int total, const std::string& list,
                            CompatLine& line) {
  std::vector<ListedNode> nodes = expand_nodes(list, line.flag());
  if (const int each = ranks_per_node(line); each > 0) {
    return use_first_nodes(total, each, std::move(nodes), line);
  }
  const bool counted = std::all_of(nodes.begin(), nodes.end(),
                                   [](const ListedNode& node) { return node.devices > 0; });
  if (!counted) return share_out(value, total, static_cast<int>(nodes.size()), line);
  const int sum = sum_of(nodes);
  if (total == sum) return;
  if (total > sum || line.has_own_option("ips")) {
    line.refuse_without_correction(
        "it is the total number of ranks, and the nodes have " + std::to_string(sum),
        "change the counts: " + list);
    return;
  }
  line.override_option("ips", list_text(filled(nodes, total)));
}

}  // namespace

bool is_this_host(const std::string& address) {
  const HostFacts host = host_facts();
  return address == host.name || is_local(host, address);
}

void show_only_gpus(const std::string& gpus, CompatLine& line) {
  line.set_option("gpus", gpus);
  line.export_variable("CUDA_VISIBLE_DEVICES=" + gpus);
  line.note("ranks see only these GPUs (CUDA_VISIBLE_DEVICES=" + gpus + ")");
}

bool gives_total_ranks(const CompatLine& line) {
  for (const char* flag :
       {"-np", "-n", "--n", "--np", "--ntasks", "--num-proc", "--num_processes"}) {
    if (line.has(flag)) return true;
  }
  return false;
}

void use_ssh(CompatLine& line) {
  for (const char* key : {"via", "host", "local_addr", "rank", "master"}) {
    if (line.has_own_option(key)) return;
  }
  line.set_option("via", "ssh");
  take_ssh_user(line);
}

void translate_hosts(const std::string& value, CompatLine& line) {
  // deepspeed's -H is a host file, mpirun's and horovodrun's a list.
  std::error_code none;
  if (line.uses_launcher("deepspeed") || std::filesystem::is_regular_file(value, none)) {
    return translate_host_file(value, line);
  }
  use_nodes(merged(expand_nodes(value, line.flag())), line);
}

void translate_host_file(const std::string& path, CompatLine& line) {
  if (line.uses_launcher("deepspeed")) return;  // it counts the hosts together with its filters
  use_nodes(merged(expand_nodes("@" + path, line.flag())), line);
}

void translate_total_ranks(const std::string& value, CompatLine& line) {
  long long total = 0;
  if (!parse_int(value, &total) || total < 1 || total > 1'000'000) {
    return line.set_option("nproc_per_node", value);  // its own check reports the error
  }
  const std::string list = line.own_option("ips").value_or("");
  const int ranks = static_cast<int>(total), nodes = counted_nodes(line);
  if (!list.empty()) return distribute_over_listed(value, ranks, list, line);
  if (translate_srun_counts(ranks, line)) return;
  if (nodes < 0) {
    return line.refuse_without_correction(
        "it is the total number of ranks, which is unknown for a job of " +
            *line.own_option("nnodes") + " nodes",
        "give --nproc_per_node=N");
  }
  share_out(value, ranks, nodes, line);
}

void translate_variable(const std::string& value, CompatLine& line) {
  const auto via = line.own_option("via");
  const bool elsewhere = via == "ssh" || via == "fleetd";
  const bool named_only = value.find('=') == std::string::npos;
  if (named_only && !elsewhere) return line.ignore("ranks inherit this environment");
  if (named_only && !get_env(value)) return line.ignore("it is not set here");
  line.export_variable(value);
}

}  // namespace fleet
