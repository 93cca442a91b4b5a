// Options of DeepSpeed's launcher. It shares --master_addr, --node_rank and others with torchrun.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/node_list.h"

namespace fleet {
namespace {

// An entry of "worker-1@worker-2:0,2": a node, and optionally its GPUs.
struct Resource {
  std::string node, gpus;
};
std::vector<Resource> resources_of(const std::string& value) {
  std::vector<Resource> all;
  for (const std::string& entry : split(value, '@')) {
    const size_t colon = entry.find(':');
    all.push_back({entry.substr(0, colon),
                   colon == std::string::npos ? std::string() : entry.substr(colon + 1)});
  }
  return all;
}

// Whether all entries name the same GPUs, or none names any.
bool have_equal_gpus(const std::vector<Resource>& all) {
  return std::all_of(all.begin(), all.end(),
                     [&](const Resource& one) { return one.gpus == all[0].gpus; });
}

void use_nodes(const std::vector<ListedNode>& nodes, CompatLine& line) {
  if (nodes.size() == 1 && nodes[0].address == "localhost") return;
  line.override_option("ips", list_text(nodes));
  use_ssh(line);
}

void translate_include(const std::string& value, CompatLine& line) {
  const std::vector<Resource> wanted = resources_of(value);
  if (wanted.empty() || !have_equal_gpus(wanted)) {
    return line.refuse_without_correction("it names different GPUs on different nodes",
                                          "start fleetrun on each node with its own --gpus");
  }
  std::map<std::string, int> counts;
  for (const ListedNode& node : expand_nodes(line.own_option("ips").value_or(""), line.flag())) {
    counts[node.address] = node.devices;
  }
  const std::string& gpus = wanted[0].gpus;
  std::vector<ListedNode> nodes;
  for (const Resource& one : wanted) {
    nodes.push_back({one.node, gpus.empty() ? counts[one.node] : 0});
  }
  use_nodes(nodes, line);
  if (!gpus.empty()) line.set_option("gpus", gpus);
}

void translate_exclude(const std::string& value, CompatLine& line) {
  const std::vector<Resource> unwanted = resources_of(value);
  const bool of_gpus = std::any_of(unwanted.begin(), unwanted.end(),
                                   [](const Resource& one) { return !one.gpus.empty(); });
  if (of_gpus) {
    return line.refuse_without_correction("fleetrun cannot exclude single GPUs",
                                          "list the GPUs to use, as in --gpus=1,2,3");
  }
  std::vector<ListedNode> nodes = expand_nodes(line.own_option("ips").value_or(""), line.flag());
  std::erase_if(nodes, [&](const ListedNode& node) {
    return std::any_of(unwanted.begin(), unwanted.end(),
                       [&](const Resource& one) { return one.node == node.address; });
  });
  if (nodes.empty()) {
    return line.refuse_without_correction("it excludes every node",
                                          "list the nodes with --hostfile");
  }
  use_nodes(nodes, line);
}

// Takes the first `value` listed nodes.
void translate_num_nodes(const std::string& value, CompatLine& line) {
  std::vector<ListedNode> nodes = expand_nodes(line.own_option("ips").value_or(""), line.flag());
  long long count = 0;
  if (nodes.empty() || !parse_int(value, &count) || count < 1 ||
      static_cast<size_t>(count) > nodes.size()) {
    return line.override_option("nnodes", value);
  }
  nodes.resize(static_cast<size_t>(count));
  line.override_option("ips", list_text(nodes));
}

}  // namespace

CompatGroup deepspeed_options() {
  CompatGroup group("deepspeed");
  group.sets({"--num_gpus", "--num_accelerators"}, "N", "nproc_per_node");
  group.translated({"--include", "-i"}, "NODE:GPUS", translate_include).late = true;
  group.translated({"--exclude"}, "NODE:GPUS", translate_exclude).late = true;
  group.translated({"--num_nodes"}, "N", translate_num_nodes).late = true;
  group.translated({"--no_ssh"}, "", [](const auto&, CompatLine&) {});  // see nodes.cc
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
  const std::string elastic = "a job is elastic if --nnodes is a range";
  const std::string range = "give --nnodes=MIN:MAX on every node";
  group.refused({"--elastic_training"}, "", elastic, range);
  group.refused({"--min_elastic_nodes", "--max_elastic_nodes"}, "N", elastic, range);
  group.refused({"--venv_script"}, "FILE", "fleetrun sources no script on the nodes",
                "start fleetrun in that environment");
  return group;
}

}  // namespace fleet
