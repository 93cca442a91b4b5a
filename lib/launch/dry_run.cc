#include "launch/dry_run.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/addresses.h"
#include "launch/secret_names.h"

namespace fleet {
namespace {

using Json = nlohmann::ordered_json;

// Node 0 where that is this one; its place in the list; else the first that is not node 0.
int foreseen_rank(const Topology& topology) {
  if (topology.node_rank >= 0) return topology.node_rank;
  return topology.hosting == Topology::Hosting::kNo ? 1 : 0;
}

void add_ranks(const Roles& roles, const LocalRoles& local, NodePlacement* node) {
  if (!roles.listed()) return;
  for (const RoleEntry& entry : local.entries) node->ranks.push_back(entry.rank);
}

NodePlacement foresee_node(const LaunchPlan& plan, int node_rank,
                           const std::vector<ListedNode>& listed) {
  const Topology& topology = plan.topology;
  NodePlacement node;
  node.node_rank = node_rank;
  node.devices = plan.devices;
  node.servers = plan.local_roles.servers;
  LocalRoles local = plan.local_roles;
  if (node_rank == foreseen_rank(topology)) {
    node.address = topology.address;
    for (const HeldPort& port : plan.ports) node.ports.push_back(port.port());
    add_ranks(plan.roles, local, &node);
    return node;
  }
  const auto place = static_cast<size_t>(node_rank);
  node.address = !listed.empty()  ? listed[place].address
                 : node_rank == 0 ? topology.rendezvous_address
                                  : "node" + std::to_string(node_rank);
  if (!listed.empty() && listed[place].devices > 0) {
    node.devices.assign(static_cast<size_t>(listed[place].devices), {});
    for (int rank = 0; plan.on_gpus() && rank < listed[place].devices; ++rank) {
      node.devices[static_cast<size_t>(rank)] = {rank};
    }
  }
  if (plan.roles.listed()) {
    local = local_roles(plan.roles, node.address);
    node.servers = local.servers;
    node.devices.assign(local.entries.size(), {});
  }
  for (size_t rank = 0; rank < node.devices.size(); ++rank) {
    const int given = rank < local.entries.size() ? local.entries[rank].port : 0;
    node.ports.push_back(given > 0 ? given : topology.start_port + static_cast<int>(rank));
  }
  add_ranks(plan.roles, local, &node);
  return node;
}

std::shared_ptr<const World> foresee_world(const LaunchPlan& plan) {
  const std::vector<ListedNode> listed = listed_nodes(plan.request.settings);
  auto world = std::make_shared<World>();
  for (int node_rank = 0; node_rank < plan.topology.nnodes; ++node_rank) {
    world->nodes.push_back(foresee_node(plan, node_rank, listed));
    NodePlacement& node = world->nodes.back();
    node.first_rank = world->world_size;
    node.first_server = world->servers;
    world->world_size += node.trainers();
    world->servers += node.servers;
  }
  const NodePlacement& first = world->nodes.front();
  world->master_address = first.address;
  world->master_port = plan.master_port && foreseen_rank(plan.topology) == 0
                           ? plan.master_port->port()
                           : plan.topology.start_port + first.nproc();
  return world;
}

std::vector<std::string> assumptions(const LaunchPlan& plan) {
  std::vector<std::string> notes;
  const Topology& topology = plan.topology;
  if (topology.start_port == 0) notes.push_back("ports are free ones, chosen anew at the start");
  if (plan.service_port && topology.nnodes > 1) {
    notes.push_back("each node has a key-value server of its own, on a free port");
  }
  if (topology.nnodes > 1 && topology.counts.empty() && !plan.roles.listed()) {
    notes.push_back("the other nodes are taken to have the ranks and devices of this one");
  }
  if (topology.nnodes > 1 && topology.nodes.empty()) {
    notes.push_back("addresses and the order of the other nodes are known when they have met");
  }
  if (topology.nnodes > 1) {
    notes.push_back("cores and OMP_NUM_THREADS of the other nodes depend on their machines");
  }
  return notes;
}

// Nothing is written: a rank that is started by hand would miss them.
void note_long_values(const std::vector<LongValue>& lists, ForeseenJob* job) {
  for (const LongValue& list : lists) {
    job->notes.push_back(list.name + " is too long for an environment (" +
                         std::to_string(list.value.size()) +
                         " characters): the start writes it to the file of " + list.name + "_FILE");
  }
}

Variables inherited_by(const std::vector<std::string>& environment, const RankCommand& rank) {
  Variables kept;
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    const bool replaced =
        std::find(rank.removed.begin(), rank.removed.end(), name) != rank.removed.end() ||
        std::any_of(rank.environment.begin(), rank.environment.end(),
                    [&](const auto& variable) { return variable.first == name; });
    if (!replaced && name.size() < entry.size())
      kept.emplace_back(name, entry.substr(name.size() + 1));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

const NodePlacement& node_of(const ForeseenJob& job, const ForeseenRank& rank) {
  return job.assignment.world->nodes.at(static_cast<size_t>(rank.node_rank));
}

// The ranks to show.
std::vector<const ForeseenRank*> selected(const ForeseenJob& job, int rank) {
  std::vector<const ForeseenRank*> all;
  for (const ForeseenRank& one : job.ranks) {
    if (rank < 0 || (!one.server && one.rank == rank)) all.push_back(&one);
  }
  if (all.empty()) {
    throw Error(ErrorCode::kUsage, "there is no rank " + std::to_string(rank), "--rank_env",
                "this job has ranks 0 to " + std::to_string(job.assignment.world->world_size - 1));
  }
  return all;
}

std::string name_of(const ForeseenRank& rank) {
  return (rank.server ? "server " : "rank ") + std::to_string(rank.rank);
}

std::string numbers(const std::vector<int>& all) {
  std::vector<std::string> texts;
  for (const int number : all) texts.push_back(std::to_string(number));
  return join(texts, ",");
}

// Columns as wide as their widest entry.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      line += " " + row[i] + std::string(widths[i] - row[i].size() + 1, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// Lists of large worlds.
std::string shortened(const std::string& value) {
  constexpr size_t kWidest = 1000, kStart = 100, kEnd = 50;
  if (value.size() <= kWidest) return value;
  return value.substr(0, kStart) + " ... " + value.substr(value.size() - kEnd) + " (" +
         std::to_string(value.size()) + " characters; --format json has them)";
}

std::string variables_text(const Variables& variables) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : variables) {
    rows.push_back({name, shortened(masked(name, value))});
  }
  return aligned(rows);
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

bool is_shell_name(const std::string& name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

Json variables_json(const Variables& variables) {
  Json object = Json::object();
  for (const auto& [name, value] : variables) object[name] = masked(name, value);
  return object;
}

}  // namespace

ForeseenJob foresee(const LaunchPlan& plan, const std::vector<std::string>& environment) {
  ForeseenJob job;
  const Topology& topology = plan.topology;
  job.job_id = plan.request.settings.text("job_id");
  job.notes = assumptions(plan);
  const int port = topology.rendezvous_port > 0 ? topology.rendezvous_port
                                                : HeldPort::any(topology.bind_address).port();
  job.rendezvous = endpoint(topology.rendezvous_address, port);
  job.assignment.world = foresee_world(plan);
  job.assignment.store_address = job.rendezvous;
  job.assignment.node_rank = foreseen_rank(topology);
  for (const NodePlacement& node : job.assignment.world->nodes) {
    Assignment theirs = job.assignment;
    theirs.node_rank = node.node_rank;
    for (RankCommand& rank : rank_commands(plan, theirs, 0)) {
      if (node.node_rank != job.assignment.node_rank) {
        rank.cores.clear();
        std::erase_if(rank.environment,
                      [](const auto& variable) { return variable.first == "OMP_NUM_THREADS"; });
      }
      const int local_rank = rank.local_rank;
      job.ranks.push_back({node.node_rank, local_rank, node.is_server(local_rank),
                           node.rank_of(local_rank), std::move(rank)});
    }
  }
  note_long_values(long_values(job.assignment, rank_context(plan)), &job);
  job.inherited = inherited_by(environment, job.ranks.back().command);
  return job;
}

std::string dry_run_table(const ForeseenJob& job, int rank) {
  const auto count = [](size_t number, const char* what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  const RankCommand& any = job.ranks.back().command;
  std::string text = "job '" + job.job_id + "': " + std::to_string(job.ranks.size()) +
                     (job.ranks.size() == 1 ? " process" : " processes") + " on " +
                     count(job.assignment.world->nodes.size(), "node") + "; nothing is started\n";
  text += "  rendezvous  " + job.rendezvous + "\n  program     " + join(any.argv, " ") + "\n";
  for (const std::string& note : job.notes) text += "  note        " + note + "\n";
  std::vector<std::vector<std::string>> rows = {
      {"", "node", "address", "local rank", "GPUs", "cores", "endpoint", "log"}};
  std::string variables;
  for (const ForeseenRank* one : selected(job, rank)) {
    const NodePlacement& node = node_of(job, *one);
    const auto local = static_cast<size_t>(one->local_rank);
    rows.push_back({name_of(*one), std::to_string(one->node_rank), node.address,
                    std::to_string(local),
                    node.devices[local].empty() ? "-" : numbers(node.devices[local]),
                    one->command.cores.empty() ? "-" : numbers(one->command.cores),
                    endpoint(node.address, node.ports[local]), one->command.log_path});
    variables += "\n" + name_of(*one) + " gets\n" + variables_text(one->command.environment);
  }
  return text + "\n" + aligned(rows) + variables + "\nand every rank inherits\n" +
         variables_text(job.inherited) + "but not " + join(any.removed, ", ") + "\n";
}

std::string dry_run_json(const ForeseenJob& job, int rank) {
  const RankCommand& any = job.ranks.back().command;
  Json all;
  all["job_id"] = job.job_id;
  all["rendezvous"] = job.rendezvous;
  all["nnodes"] = job.assignment.nnodes();
  all["world_size"] = job.assignment.world_size();
  all["servers"] = job.assignment.world->servers;
  all["program"] = any.argv;
  all["notes"] = job.notes;
  all["ranks"] = Json::array();
  for (const ForeseenRank* one : selected(job, rank)) {
    const NodePlacement& node = node_of(job, *one);
    const auto local = static_cast<size_t>(one->local_rank);
    Json entry;
    entry["role"] = one->server ? "server" : "trainer";
    entry["rank"] = one->rank;
    entry["node_rank"] = one->node_rank;
    entry["address"] = node.address;
    entry["local_rank"] = one->local_rank;
    entry["gpus"] = node.devices[local];
    entry["cores"] = one->command.cores;
    entry["endpoint"] = endpoint(node.address, node.ports[local]);
    entry["log"] = one->command.log_path;
    entry["environment"] = variables_json(one->command.environment);
    all["ranks"].push_back(std::move(entry));
  }
  all["inherited"] = variables_json(job.inherited);
  all["removed"] = any.removed;
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string dry_run_shell(const ForeseenJob& job, int rank, bool masked) {
  const ForeseenRank& one = *selected(job, rank).front();
  std::string text = "# " + name_of(one) + " of " + std::to_string(job.assignment.world_size()) +
                     " (local rank " + std::to_string(one.local_rank) + " of node " +
                     std::to_string(one.node_rank) + ", " + node_of(job, one).address + ")\n";
  for (const std::string& name : one.command.removed) text += "unset " + name + "\n";
  Variables all = job.inherited;
  all.insert(all.end(), one.command.environment.begin(), one.command.environment.end());
  for (const auto& [name, value] : all) {
    // What belongs to the shell itself, and functions that bash has exported.
    const bool own = name == "_" || name == "PWD" || name == "OLDPWD" || name == "SHLVL";
    if (own || !is_shell_name(name)) continue;
    if (masked && is_secret(name) && !value.empty()) {
      text += "# " + name + " is not shown on a terminal\n";
    } else {
      text += "export " + name + "=" + quoted(value) + "\n";
    }
  }
  return text;
}

void print_dry_run(const LaunchPlan& plan) {
  const ForeseenJob job = foresee(plan, whole_environment());
  const DryRun& wish = plan.request.dry_run;
  const std::string text = wish.format == "json" ? dry_run_json(job, wish.rank)
                           : wish.format == "shell"
                               ? dry_run_shell(job, wish.rank, ::isatty(STDOUT_FILENO) == 1)
                               : dry_run_table(job, wish.rank);
  std::fputs(text.c_str(), stdout);
}

}  // namespace fleet
