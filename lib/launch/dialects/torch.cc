// torchrun's, for torch.distributed with init_method env://.
#include "base/env.h"
#include "launch/dialects/dialect.h"

namespace fleet {
namespace {

constexpr char kAsyncErrors[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";

Variables variables(const Assignment& assignment, int local_rank, const RankContext& context) {
  const World& world = *assignment.world;
  const std::string rank = std::to_string(assignment.first_rank() + local_rank);
  const std::string size = std::to_string(world.world_size);
  Variables all = {
          {"RANK", rank},
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
          {"TORCHELASTIC_RESTART_COUNT", std::to_string(world.restarts)},
          {"TORCHELASTIC_MAX_RESTARTS", std::to_string(context.max_restarts)},
          {"TORCHELASTIC_RUN_ID", context.job_id},
          // Rank 0 opens the store on MASTER_PORT itself: the launcher only keeps the port.
          {"TORCHELASTIC_USE_AGENT_STORE", "False"},
          {kAsyncErrors, get_env(kAsyncErrors).value_or("1")}};
  if (!context.error_file.empty()) all.emplace_back("TORCHELASTIC_ERROR_FILE", context.error_file);
  return all;
}

}  // namespace

const Dialect kTorchDialect = {.name = "torch", .variables = variables};

}  // namespace fleet
