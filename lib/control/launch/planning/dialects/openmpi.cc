// Open MPI's variables, which many programs read to learn their rank. They do not suffice for an
// MPI program: Open MPI's MPI_Init needs PMIx, which mpirun and srun provide.
#include "launch/planning/dialects/dialect.h"

namespace fleet {
namespace {

Variables openmpi_variables(const Assignment& assignment, int local_rank, const RankContext&) {
  const std::string size = std::to_string(assignment.world_size());
  return {
      {"OMPI_COMM_WORLD_RANK", std::to_string(assignment.node().first_rank() + local_rank)},
      {"OMPI_COMM_WORLD_SIZE", size},
      {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank)},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(assignment.node().local_world_size())},
      {"OMPI_COMM_WORLD_NODE_RANK", std::to_string(local_rank)},
      {"OMPI_UNIVERSE_SIZE", size},
  };
}

}  // namespace

FLEET_DIALECT(openmpi) { def.variables = openmpi_variables; }

}  // namespace fleet
