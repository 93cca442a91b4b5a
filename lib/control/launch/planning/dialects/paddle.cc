// Paddle, with the names of both generations of its launcher.
#include <numeric>

#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/dialects/dialect.h"

namespace fleet {
namespace {

std::string all_devices(const World& world) {
  std::vector<std::string> all;
  for (const wire::Node& node : world.nodes()) {
    for (int local = 0; local < node.local_world_size(); ++local) {
      all.push_back(join_numbers(devices_of(node, local), ":"));
    }
  }
  return join(all, ",");
}

Variables lists(const World& world) {
  if (world.servers() > 0) {
    return {{"PADDLE_PSERVERS_IP_PORT_LIST", join(endpoints_of(world, true), ",")},
            {"PADDLE_TRAINER_ENDPOINTS", join(endpoints_of(world, false), ",")}};
  }
  return {{"PADDLE_TRAINER_ENDPOINTS", join(endpoints_of(world, false), ",")},
          {"PADDLE_WORLD_DEVICE_IDS", all_devices(world)}};
}

// Indices among the GPUs that the rank sees.
std::string visible_indices(std::vector<int> devices, const RankContext& context) {
  if (context.virtual_local_rank) std::iota(devices.begin(), devices.end(), 0);
  return join_numbers(devices, ",");
}

// The variables of the older launcher, in the order of its printed table.
Variables older(const Assignment& assignment, int local_rank, const RankContext& context) {
  const World& world = *assignment.world;
  const wire::Node& node = assignment.node();
  const std::vector<int> devices = devices_of(node, local_rank);
  Variables all = {
      {"PADDLE_TRAINER_ID", std::to_string(node.first_rank() + local_rank)},
      {"PADDLE_CURRENT_ENDPOINT", endpoint(node.address(), node.ports(local_rank))},
      {"PADDLE_TRAINERS_NUM", std::to_string(world.world_size())},
      context.lists->variables.at("PADDLE_TRAINER_ENDPOINTS"),
      {"PADDLE_RANK_IN_NODE", std::to_string(local_rank)},
      {"PADDLE_LOCAL_DEVICE_IDS", join_numbers(devices, ",")},
      context.lists->variables.at("PADDLE_WORLD_DEVICE_IDS"),
  };
  if (!devices.empty()) {
    const std::string seen = visible_indices(devices, context);
    all.emplace_back("FLAGS_selected_gpus", seen);
    all.emplace_back("FLAGS_selected_accelerators", seen);
  }
  return all;
}

Variables both(const Assignment& assignment, int local_rank, const RankContext& context) {
  const World& world = *assignment.world;
  Variables all = older(assignment, local_rank, context);
  const Variables newer = {
      {"PADDLE_MASTER", endpoint(world.master_address(), world.master_port())},
      {"PADDLE_GLOBAL_SIZE", std::to_string(world.world_size())},
      {"PADDLE_LOCAL_SIZE", std::to_string(assignment.node().local_world_size())},
      {"PADDLE_GLOBAL_RANK", std::to_string(assignment.node().first_rank() + local_rank)},
      {"PADDLE_LOCAL_RANK", std::to_string(local_rank)},
      {"PADDLE_NNODES", std::to_string(assignment.nnodes())},
      {"POD_NAME", context.job_id + "-" + std::to_string(assignment.node_rank)},
      {"PADDLE_LOG_DIR", context.log_dir},
  };
  all.insert(all.end(), newer.begin(), newer.end());
  if (assignment.node().devices(local_rank).ids().empty()) {
    all.emplace_back("PADDLE_DISTRI_BACKEND", "gloo");
  }
  return all;
}

// A process of a job with parameter servers: the variables that both launcher generations set for
// its role.
Variables role(const Assignment& assignment, int local_rank, const RankContext& context) {
  const World& world = *assignment.world;
  const wire::Node& node = assignment.node();
  const std::string role = is_server(node, local_rank) ? "PSERVER" : "TRAINER";
  Variables all = {
      context.lists->variables.at("PADDLE_PSERVERS_IP_PORT_LIST"),
      context.lists->variables.at("PADDLE_TRAINER_ENDPOINTS"),
      {"PADDLE_TRAINERS_NUM", std::to_string(world.world_size())},
      {"PADDLE_ROLE", role},
      {"TRAINING_ROLE", role},
      {"PADDLE_PORT", std::to_string(node.ports(local_rank))},
      {"POD_IP", node.address()},
      {"PADDLE_NNODES", std::to_string(assignment.nnodes())},
      {"PADDLE_LOG_DIR", context.log_dir},
      {"PADDLE_WITH_GLOO", context.with_gloo},
      {"PADDLE_GLOO_RENDEZVOUS", "3"},
      {"PADDLE_GLOO_FS_PATH", context.log_dir + "/gloo"},
      {"PADDLE_GLOO_HTTP_ENDPOINT", endpoint(world.master_address(), world.master_port())},
  };
  if (!is_server(node, local_rank)) {
    all.emplace_back("PADDLE_TRAINER_ID", std::to_string(rank_of(node, local_rank)));
    const std::vector<int> devices = devices_of(node, local_rank);
    if (!devices.empty()) {
      all.emplace_back("FLAGS_selected_gpus", visible_indices(devices, context));
    }
  }
  return all;
}

}  // namespace

FLEET_DIALECT(paddle) {
  def.order = 1;
  def.lists = lists;
  def.variables = both;
  def.table = older;
  def.role = role;
}

}  // namespace fleet
