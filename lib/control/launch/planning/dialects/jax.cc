// JAX, for jax.distributed.initialize(). Process 0 runs the coordinator on the port of its own
// endpoint, so that MASTER_PORT stays torch's. Without arguments, JAX reads only the coordinator's
// address itself and takes the rest from known cluster environments. Of those, only Open MPI's
// consists of nothing but variables.
#include "launch/planning/addresses.h"
#include "launch/planning/dialects/dialect.h"

namespace fleet {
namespace {

Variables jax_variables(const Assignment& assignment, int local_rank, const RankContext&) {
  const std::string coordinator = first_endpoint(*assignment.world);
  const std::string size = std::to_string(assignment.world_size());
  const std::string rank = std::to_string(assignment.node().first_rank() + local_rank);
  Variables all = {
      {"JAX_COORDINATOR_ADDRESS", coordinator},
      {"JAX_NUM_PROCESSES", size},
      {"JAX_PROCESS_ID", rank},
      {"OMPI_MCA_orte_hnp_uri", "0.0;tcp://" + coordinator},
      {"OMPI_COMM_WORLD_RANK", rank},
      {"OMPI_COMM_WORLD_SIZE", size},
      {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank)},
  };
  const std::vector<int> devices = devices_of(assignment.node(), local_rank);
  if (!devices.empty()) all.emplace_back("JAX_LOCAL_DEVICE_IDS", join_numbers(devices, ","));
  return all;
}

// The coordination service uses gRPC, which applies http_proxy to any address.
std::string coordinator_host(const Assignment& assignment) {
  const std::string endpoint = first_endpoint(*assignment.world);
  return endpoint.substr(0, endpoint.rfind(':'));
}

}  // namespace

FLEET_DIALECT(jax) {
  def.variables = jax_variables;
  def.proxied_host = coordinator_host;
}

}  // namespace fleet
