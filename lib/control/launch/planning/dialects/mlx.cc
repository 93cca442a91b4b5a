// MLX, for its ring and NCCL backends. Ranks of the ring listen on their endpoints. NCCL's first
// rank publishes the NCCL id on its endpoint.
#include <filesystem>

#include "base/json.h"
#include "base/owned_file.h"
#include "launch/planning/dialects/dialect.h"

namespace fleet {
namespace {

// The path is absolute because the program may change its working directory.
std::string hostfile(const RankContext& context) {
  return std::filesystem::absolute(context.log_dir) / "mlx_hosts.json";
}

Variables mlx_variables(const Assignment& assignment, int local_rank, const RankContext& context) {
  const wire::Node& first = assignment.world->nodes(0);
  return {
      {"MLX_RANK", std::to_string(assignment.node().first_rank() + local_rank)},
      {"MLX_WORLD_SIZE", std::to_string(assignment.world_size())},
      {"MLX_HOSTFILE", hostfile(context)},
      {"NCCL_HOST_IP", first.address()},
      {"NCCL_PORT", std::to_string(first.ports(0))},
  };
}

// A list of addresses for each rank.
void write_files(const Assignment& assignment, const RankContext& context) {
  auto hosts = Json::array();
  for (const std::string& endpoint : endpoints_of(*assignment.world, false)) {
    hosts.push_back(Json::array({endpoint}));
  }
  replace_owned_file(hostfile(context), hosts.dump() + "\n");
}

}  // namespace

FLEET_DIALECT(mlx) {
  def.variables = mlx_variables;
  def.write_files = write_files;
}

}  // namespace fleet
