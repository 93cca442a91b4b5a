// Options of DeepSpeed's launcher. It shares --master_addr, --node_rank and others with torchrun.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "launch/planning/compat/nodes.h"
#include "launch/planning/node_list.h"

namespace fleet {
namespace {

constexpr char kDeepSpeed[] = "deepspeed";

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

CompatOption ignored(std::string flag, std::string value, std::string why) {
  return {.of = kDeepSpeed,
          .flags = {std::move(flag)},
          .value = std::move(value),
          .ignored = std::move(why)};
}

CompatOption refused(std::string flag, std::string value, std::string why, std::string next) {
  return {.of = kDeepSpeed,
          .flags = {std::move(flag)},
          .value = std::move(value),
          .refused = std::move(why),
          .next = std::move(next)};
}

}  // namespace

std::vector<CompatOption> deepspeed_options() {
  const std::string cores = "fleetrun divides the cores of a node among its ranks";
  return {
      {.of = kDeepSpeed,
       .flags = {"--num_gpus", "--num_accelerators"},
       .value = "N",
       .translate = translate_ranks_per_node},
      {.of = kDeepSpeed,
       .flags = {"--include", "-i"},
       .value = "NODE:GPUS",
       .translate = translate_include,
       .late = true},
      {.of = kDeepSpeed,
       .flags = {"--exclude"},
       .value = "NODE:GPUS",
       .translate = translate_exclude,
       .late = true},
      {.of = kDeepSpeed,
       .flags = {"--num_nodes"},
       .value = "N",
       .translate = translate_num_nodes,
       .late = true},
      {.of = kDeepSpeed,
       .flags = {"--no_ssh"},
       .translate = [](const std::string&, CompatLine&) {}},  // see nodes.cc
      {.of = kDeepSpeed,
       .flags = {"--enable_each_rank_log"},
       .value = "DIR",
       .translate = [](const std::string& dir,
                       CompatLine& line) { line.set_option("log_dir", dir); }},
      {.of = kDeepSpeed,
       .flags = {"--launcher_args"},
       .value = "TEXT",
       .translate = [](const std::string& text,
                       CompatLine& line) { line.set_option("via_options", text); },
       .late = true},
      ignored("--no_local_rank", "", "ranks read it from LOCAL_RANK"),
      ignored("--no_ssh_check", "", "fleetrun names each node that it cannot reach"),
      ignored("--force_multi", "", "fleetrun starts one node like several"),
      ignored("--save_pid", "", "see fleetrun ls"),
      ignored("--bind_cores_to_rank", "", cores),
      ignored("--bind_core_list", "LIST", cores),
      refused("--autotuning", "MODE", "fleetrun does not tune DeepSpeed's configuration",
              "run deepspeed --autotuning once"),
      refused("--elastic_training", "", "a job is elastic if --nnodes is a range",
              "give --nnodes=MIN:MAX on every node"),
      refused("--min_elastic_nodes", "N", "a job is elastic if --nnodes is a range",
              "give --nnodes=MIN:MAX on every node"),
      refused("--max_elastic_nodes", "N", "a job is elastic if --nnodes is a range",
              "give --nnodes=MIN:MAX on every node"),
      refused("--venv_script", "FILE", "fleetrun sources no script on the nodes",
              "start fleetrun in that environment"),
  };
}

}  // namespace fleet
