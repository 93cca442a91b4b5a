#include "launch/environment.h"

#include <algorithm>

#include "base/text.h"
#include "launch/addresses.h"
#include "observe/progress.h"
#include "rendezvous/env.h"

namespace fleet {
namespace {

std::string join_ints(const std::vector<int>& numbers, const char* separator) {
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return join(texts, separator);
}

std::string all_devices(const World& world) {
  std::vector<std::string> all;
  for (const NodePlacement& node : world.nodes) {
    for (const std::vector<int>& devices : node.devices) all.push_back(join_ints(devices, ":"));
  }
  return join(all, ",");
}

// A role's of a job with parameter servers: what both generations of Paddle's launcher set.
Variables role_environment(const Assignment& assignment, int local_rank,
                           const RankContext& context) {
  const World& world = *assignment.world;
  const NodePlacement& node = assignment.node();
  const std::string role = node.is_server(local_rank) ? "PSERVER" : "TRAINER";
  Variables all = {
      {"PADDLE_PSERVERS_IP_PORT_LIST", join(endpoints_of(world, true), ",")},
      {"PADDLE_TRAINER_ENDPOINTS", join(endpoints_of(world, false), ",")},
      {"PADDLE_TRAINERS_NUM", std::to_string(world.world_size)},
      {"PADDLE_ROLE", role},
      {"TRAINING_ROLE", role},
      {"PADDLE_PORT", std::to_string(node.ports.at(static_cast<size_t>(local_rank)))},
      {"POD_IP", node.address},
      {"PADDLE_NNODES", std::to_string(assignment.nnodes())},
      {"PADDLE_WITH_GLOO", context.with_gloo},
      {"PADDLE_GLOO_RENDEZVOUS", "3"},
      {"PADDLE_GLOO_FS_PATH", context.log_dir + "/gloo"},
      {"PADDLE_GLOO_HTTP_ENDPOINT", endpoint(world.master_address, world.master_port)},
  };
  if (!node.is_server(local_rank)) {
    all.emplace_back("PADDLE_TRAINER_ID", std::to_string(node.rank_of(local_rank)));
  }
  return all;
}

Variables newer_paddle(const Assignment& assignment, int local_rank, const RankContext& context) {
  const World& world = *assignment.world;
  Variables all = {
      {"PADDLE_MASTER", endpoint(world.master_address, world.master_port)},
      {"PADDLE_GLOBAL_SIZE", std::to_string(world.world_size)},
      {"PADDLE_LOCAL_SIZE", std::to_string(assignment.node().nproc())},
      {"PADDLE_GLOBAL_RANK", std::to_string(assignment.first_rank() + local_rank)},
      {"PADDLE_LOCAL_RANK", std::to_string(local_rank)},
      {"PADDLE_NNODES", std::to_string(assignment.nnodes())},
      {"POD_NAME", context.job_id + "-" + std::to_string(assignment.node_rank)},
      {"PADDLE_LOG_DIR", context.log_dir},
  };
  if (assignment.node().devices.at(static_cast<size_t>(local_rank)).empty()) {
    all.emplace_back("PADDLE_DISTRI_BACKEND", "gloo");
  }
  return all;
}

Variables torch_names(const Assignment& assignment, int local_rank, const RankContext& context) {
  const World& world = *assignment.world;
  const std::string rank = std::to_string(assignment.first_rank() + local_rank);
  const std::string size = std::to_string(world.world_size);
  return {{"RANK", rank},
          {"LOCAL_RANK", std::to_string(local_rank)},
          {"WORLD_SIZE", size},
          {"LOCAL_WORLD_SIZE", std::to_string(assignment.node().nproc())},
          {"GROUP_RANK", std::to_string(assignment.node_rank)},
          {"GROUP_WORLD_SIZE", std::to_string(assignment.nnodes())},
          {"ROLE_RANK", rank},
          {"ROLE_NAME", "default"},
          {"ROLE_WORLD_SIZE", size},
          {"MASTER_ADDR", world.master_address},
          {"MASTER_PORT", std::to_string(world.master_port)},
          {"TORCHELASTIC_RESTART_COUNT", std::to_string(assignment.epoch() - 1)},
          {"TORCHELASTIC_MAX_RESTARTS", "0"},
          {"TORCHELASTIC_RUN_ID", context.job_id},
          // Rank 0 opens the store on MASTER_PORT itself: the launcher only keeps the port.
          {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
}

}  // namespace

std::vector<std::string> endpoints_of(const World& world, bool servers) {
  std::vector<std::string> all(static_cast<size_t>(servers ? world.servers : world.world_size));
  for (const NodePlacement& node : world.nodes) {
    for (int local = 0; local < node.nproc(); ++local) {
      const auto rank = static_cast<size_t>(node.rank_of(local));
      if (node.is_server(local) != servers || rank >= all.size()) continue;
      all[rank] = endpoint(node.address, node.ports[static_cast<size_t>(local)]);
    }
  }
  return all;
}

std::vector<CorePlan> plan_cores(const std::vector<int>& available, int first, int ranks,
                                 int on_host, bool user_decides) {
  std::vector<CorePlan> plans(static_cast<size_t>(ranks));
  if (user_decides) return plans;
  const int each = static_cast<int>(available.size()) / on_host;
  for (int i = 0; i < ranks; ++i) {
    CorePlan& plan = plans[static_cast<size_t>(i)];
    plan.threads = std::max(1, each);
    const auto begin = available.begin() + static_cast<std::ptrdiff_t>(first + i) * each;
    if (each > 0) plan.cores.assign(begin, begin + each);
  }
  return plans;
}

Variables table_environment(const Assignment& assignment, int local_rank,
                            const RankContext& context) {
  const World& world = *assignment.world;
  if (world.servers > 0) return role_environment(assignment, local_rank, context);
  const NodePlacement& node = assignment.node();
  const std::vector<int>& devices = node.devices.at(static_cast<size_t>(local_rank));
  Variables all = {
      {"PADDLE_TRAINER_ID", std::to_string(node.first_rank + local_rank)},
      {"PADDLE_CURRENT_ENDPOINT",
       endpoint(node.address, node.ports.at(static_cast<size_t>(local_rank)))},
      {"PADDLE_TRAINERS_NUM", std::to_string(world.world_size)},
      {"PADDLE_TRAINER_ENDPOINTS", join(endpoints_of(world, false), ",")},
      {"PADDLE_RANK_IN_NODE", std::to_string(local_rank)},
      {"PADDLE_LOCAL_DEVICE_IDS", join_ints(devices, ",")},
      {"PADDLE_WORLD_DEVICE_IDS", all_devices(world)},
  };
  if (!devices.empty()) {
    all.emplace_back("FLAGS_selected_gpus", join_ints(devices, ","));
    all.emplace_back("FLAGS_selected_accelerators", join_ints(devices, ","));
  }
  return all;
}

Variables rank_environment(const Assignment& assignment, int local_rank,
                           const RankContext& context) {
  Variables all = table_environment(assignment, local_rank, context);
  const auto add = [&](const Variables& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (assignment.world->servers == 0) {
    add(newer_paddle(assignment, local_rank, context));
    add(torch_names(assignment, local_rank, context));
  }
  all.emplace_back(kEnvStoreAddress, assignment.store_address);
  all.emplace_back(kEnvJobId, context.job_id);
  all.emplace_back(kEnvEpoch, std::to_string(assignment.epoch()));
  all.emplace_back(kEnvLogLevel, context.log_level);
  if (context.terminal_width > 0) {
    all.emplace_back(kEnvTerminalWidth, std::to_string(context.terminal_width));
  }
  if (context.threads > 0) all.emplace_back("OMP_NUM_THREADS", std::to_string(context.threads));
  return all;
}

std::vector<std::string> removed_environment(const Assignment& assignment, int local_rank) {
  std::vector<std::string> names = {"http_proxy", "https_proxy"};
  if (assignment.node().is_server(local_rank)) names.emplace_back("PADDLE_TRAINER_ID");
  return names;
}

}  // namespace fleet
