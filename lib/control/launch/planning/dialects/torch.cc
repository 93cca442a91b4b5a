// torchrun, for torch.distributed with init_method env://.
#include "base/env.h"
#include "launch/planning/dialects/dialect.h"

namespace fleet {
namespace {

constexpr char kAsyncErrors[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";

Variables torch_variables(const Assignment& assignment, int local_rank,
                          const RankContext& context) {
  const World& world = *assignment.world;
  const RoleRanks& role = context.lists->roles.at(static_cast<size_t>(assignment.node_rank));
  Variables all = {{"RANK", std::to_string(assignment.node().first_rank() + local_rank)},
                   {"LOCAL_RANK", std::to_string(context.virtual_local_rank ? 0 : local_rank)},
                   {"WORLD_SIZE", std::to_string(world.world_size())},
                   {"LOCAL_WORLD_SIZE", std::to_string(assignment.node().local_world_size())},
                   {"GROUP_RANK", std::to_string(assignment.node_rank)},
                   {"GROUP_WORLD_SIZE", std::to_string(assignment.nnodes())},
                   {"ROLE_RANK", std::to_string(role.first + local_rank)},
                   {"ROLE_NAME", assignment.node().role()},
                   {"ROLE_WORLD_SIZE", std::to_string(role.size)},
                   {"MASTER_ADDR", world.master_address()},
                   {"MASTER_PORT", std::to_string(world.master_port())},
                   {"TORCHELASTIC_RESTART_COUNT", std::to_string(world.restarts())},
                   {"TORCHELASTIC_MAX_RESTARTS", std::to_string(context.max_restarts)},
                   {"TORCHELASTIC_RUN_ID", context.job_id},
                   // Rank 0 opens the store on MASTER_PORT; the launcher only reserves the port.
                   {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                   {"TORCHELASTIC_SIGNALS_TO_HANDLE", context.stop_signals},
                   {kAsyncErrors, get_env(kAsyncErrors).value_or("1")}};
  if (!context.error_file.empty()) all.emplace_back("TORCHELASTIC_ERROR_FILE", context.error_file);
  if (context.virtual_local_rank) {
    all.emplace_back("CUDA_VISIBLE_DEVICES", context.visible_devices);
    if (get_env("HIP_VISIBLE_DEVICES")) {
      all.emplace_back("HIP_VISIBLE_DEVICES", context.visible_devices);
    }
  }
  return all;
}

}  // namespace

FLEET_DIALECT(torch) {
  def.order = 2;
  def.variables = torch_variables;
}

}  // namespace fleet
