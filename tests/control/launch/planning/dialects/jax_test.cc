#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/planning/dialects/dialect.h"
#include "tests/control/launch/sample_job.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(JaxDialect, NamesTheCoordinatorAndItself) {
  const auto variables = dialect_named("jax").variables;
  EXPECT_THAT(variables(sample_job(false), 1, {}),
              ElementsAre(Pair("JAX_COORDINATOR_ADDRESS", "10.0.0.1:6070"),
                          Pair("JAX_NUM_PROCESSES", "4"), Pair("JAX_PROCESS_ID", "3"),
                          Pair("OMPI_MCA_orte_hnp_uri", "0.0;tcp://10.0.0.1:6070"),
                          Pair("OMPI_COMM_WORLD_RANK", "3"), Pair("OMPI_COMM_WORLD_SIZE", "4"),
                          Pair("OMPI_COMM_WORLD_LOCAL_RANK", "1")));
  EXPECT_EQ(variables(sample_job(true), 1, {}).back(),
            std::make_pair(std::string("JAX_LOCAL_DEVICE_IDS"), std::string("2,3")));
}

}  // namespace
}  // namespace fleet
