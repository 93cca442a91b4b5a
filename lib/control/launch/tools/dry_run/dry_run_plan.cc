#include <algorithm>

#include "base/child_process.h"
#include "base/file.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/rank_commands.h"
#include "launch/starting/start_job.h"
#include "launch/tools/doctor/checks.h"
#include "launch/tools/doctor/preflight.h"
#include "launch/tools/dry_run/dry_run.h"
#include "node/runtime_folder.h"

namespace fleet {
namespace {

// The rank that this node will probably have: its place in the list, 0 if it hosts the rendezvous,
// else 1.
int expected_node_rank(const Topology& topology) {
  if (topology.node_rank >= 0) return topology.node_rank;
  return topology.hosting == Topology::Hosting::kNo ? 1 : 0;
}

wire::Node expected_node(const LaunchPlan& plan, int node_rank,
                         const std::vector<ListedNode>& listed) {
  const Topology& topology = plan.topology;
  if (node_rank == expected_node_rank(topology)) return node_of(plan);
  wire::Node node;
  node.set_role(plan.config().role);
  const auto index = static_cast<size_t>(node_rank);
  node.set_address(!listed.empty()  ? listed[index].address
                   : node_rank == 0 ? topology.rendezvous_address
                                    : "node" + std::to_string(node_rank));
  std::vector<std::vector<int>> devices = plan.ranks.devices;
  if (!listed.empty() && listed[index].devices > 0) {
    devices.assign(static_cast<size_t>(listed[index].devices), {});
    for (int rank = 0; plan.on_gpus() && rank < listed[index].devices; ++rank) {
      devices[static_cast<size_t>(rank)] = {rank};
    }
  }
  LocalRoles local = plan.local_roles;
  if (plan.config().roles.listed()) {
    local = local_roles(plan.config().roles, node.address());
    devices.assign(local.entries.size(), {});
  }
  node.set_servers(local.servers);
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    const int given = rank < local.entries.size() ? local.entries[rank].port : 0;
    const int counted = topology.start_port > 0 ? topology.start_port + static_cast<int>(rank) : 0;
    add_rank(&node, devices[rank], given > 0 ? given : counted);  // 0: any free port
  }
  if (plan.config().roles.listed()) {
    for (const RoleEntry& entry : local.entries) node.add_ranks(entry.rank);
  }
  return node;
}

std::shared_ptr<const World> expected_world(const LaunchPlan& plan) {
  const std::vector<ListedNode>& listed = plan.config().nodes.listed.value;
  auto world = std::make_shared<World>();
  world->mutable_id()->set_generation(1);
  for (int node_rank = 0; node_rank < plan.topology.nnodes; ++node_rank) {
    *world->add_nodes() = expected_node(plan, node_rank, listed);
  }
  number_ranks(world.get());
  const wire::Node& first = world->nodes(0);
  world->set_master_address(first.address());
  world->set_master_port(plan.master_port && expected_node_rank(plan.topology) == 0
                             ? plan.master_port->port()
                             : plan.topology.start_port + first.local_world_size());
  return world;
}

std::vector<std::string> assumptions(const LaunchPlan& plan) {
  std::vector<std::string> notes;
  const Topology& topology = plan.topology;
  if (topology.start_port == 0) notes.push_back("ports are examples: each start chooses free ones");
  if (plan.service_port && topology.nnodes > 1) {
    notes.push_back("each node runs its own key-value server, on a free port");
  }
  if (topology.nnodes > 1 && topology.counts.empty() && !plan.config().roles.listed()) {
    notes.push_back("the other nodes are assumed to have the ranks and devices of this node");
  }
  if (topology.nnodes > 1 && topology.nodes.empty()) {
    notes.push_back(
        "addresses and order of the other nodes are unknown until "
        "they have joined");
  }
  if (topology.nnodes > 1) {
    notes.push_back(
        "cores and OMP_NUM_THREADS of the other nodes depend on "
        "their machines");
  }
  if (const std::optional<int>& rank = plan.config().debug_rank.value) {
    const std::string number = std::to_string(*rank);
    notes.push_back("rank " + number + " waits until `fleetrun debug --rank " + number +
                    "` starts its program");
  }
  return notes;
}

// A dry run writes no files, so a rank started by hand would lack them.
void note_long_values(const LaunchPlan& plan, DryRunPlan* job) {
  for (const LongValue& list : long_values(job->assignment, rank_context(plan))) {
    job->notes.push_back(list.name + " is too long for an environment variable (" +
                         std::to_string(list.value.size()) +
                         " characters): the start writes it to the file named by " + list.name +
                         "_FILE");
  }
}

Variables inherited_by(const std::vector<std::string>& environment, const wire::RankCommand& rank) {
  Variables kept;
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    const auto& removed = rank.removed();
    const auto& set = rank.environment();
    const bool replaced = std::find(removed.begin(), removed.end(), name) != removed.end() ||
                          std::any_of(set.begin(), set.end(), [&](const auto& variable) {
                            return variable.name() == name;
                          });
    if (!replaced && name.size() < entry.size())
      kept.emplace_back(name, entry.substr(name.size() + 1));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// Shows the ranks of one node, or only trainer `wanted`.
void visit_node(const RankCommands& commands, const std::vector<CorePlan>& own_cores,
                const Assignment& own, int node_rank, int wanted,
                const DryRunPlan::Visitor& visit) {
  Assignment assignment = own;
  assignment.node_rank = node_rank;
  const wire::Node& node = assignment.node();
  for (int local_rank = 0; local_rank < node.local_world_size(); ++local_rank) {
    const bool server = is_server(node, local_rank);
    if (wanted >= 0 && (server || rank_of(node, local_rank) != wanted)) continue;
    const bool here = node_rank == own.node_rank;  // the cores of other machines are unknown
    const CorePlan cores = here ? own_cores[static_cast<size_t>(local_rank)] : CorePlan{};
    visit({node_rank, local_rank, server, rank_of(node, local_rank),
           commands.of(assignment, local_rank, cores)});
  }
}

// A single-node job uses a Unix socket, whose name is chosen at the start.
std::string rendezvous_of(const Topology& topology) {
  if (topology.is_single_node()) return "unix:" + runtime_folder() + "/rendezvous.sock";
  const int port = topology.rendezvous_port > 0 ? topology.rendezvous_port
                                                : ReservedPort::any(topology.bind_address).port();
  return endpoint(topology.rendezvous_address, port);
}

constexpr const char* kPassedOn[] = {"OMP_NUM_THREADS", "FLAGS_selected_gpus", "PADDLE_TRAINER_ID"};

}  // namespace

DryRunPlan make_dry_run_plan(const LaunchPlan& plan, const std::vector<std::string>& environment) {
  DryRunPlan job;
  const Topology& topology = plan.topology;
  job.job_id = plan.config().job_id.value;
  job.program = plan.command;
  job.notes = assumptions(plan);
  job.findings = check_node(gather_facts(plan));
  job.rendezvous = rendezvous_of(topology);
  job.assignment.world = expected_world(plan);
  job.assignment.store_address = job.rendezvous;
  job.assignment.node_rank = expected_node_rank(topology);
  note_long_values(plan, &job);
  const auto commands = std::make_shared<const RankCommands>(plan, job.assignment, 0);
  const std::vector<CorePlan> cores = cores_of_ranks(plan.config(), plan.ranks, job.assignment);
  job.for_each_rank = [commands, cores, own = job.assignment](int rank,
                                                              const DryRunPlan::Visitor& visit) {
    for (int node = 0; node < own.nnodes(); ++node)
      visit_node(*commands, cores, own, node, rank, visit);
  };
  const int last =
      job.assignment.node().local_world_size() - 1;  // a trainer, even if there are servers
  const wire::RankCommand any = commands->of(job.assignment, last, cores.back());
  job.inherited = inherited_by(environment, any);
  job.removed.assign(any.removed().begin(), any.removed().end());
  return job;
}

JobExplanation parse_job_explanation(const std::string& output) {
  JobExplanation explanation;
  auto answer = Json::try_parse(last_line(output));
  const Json* text = answer ? answer->find("text") : nullptr;
  if (!text || !text->is_array()) {
    explanation.missing = "fleet-worker gave no explanation";
    return explanation;
  }
  for (const Json& line : *text) {
    if (line.is_string()) explanation.lines.push_back(escape_controls(line.get<std::string>()));
  }
  answer->erase("text");
  explanation.json = answer->dump_lossy();
  return explanation;
}

JobExplanation explain_job_file(const std::vector<std::string>& command, int ranks, int nodes,
                                int servers, const Variables& environment) {
  std::vector<std::string> words = {"/usr/bin/env"};
  for (const auto& [name, value] : environment) {
    const bool passed =
        std::find(std::begin(kPassedOn), std::end(kPassedOn), name) != std::end(kPassedOn);
    if (passed) words.push_back(name + "=" + value);
  }
  words.insert(words.end(), command.begin(), command.end());
  words.insert(words.end(),
               {"--explain", "--format=json", "--measure=never", "--ranks=" + std::to_string(ranks),
                "--nodes=" + std::to_string(nodes), "--servers=" + std::to_string(servers)});
  const ChildResult worker = run_child({.words = std::move(words)});
  if (worker.exit_code == 0) return parse_job_explanation(worker.output);
  const std::string said = last_line(worker.error_output);
  JobExplanation explanation;
  explanation.missing =
      said.empty() ? "fleet-worker ended with exit code " + std::to_string(worker.exit_code)
                   : shown_name(said, 300);
  return explanation;
}

}  // namespace fleet
