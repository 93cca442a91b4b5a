// What a rank learns of its job from its environment.
#include "api/world.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace fleet {
namespace {

using testing::ElementsAre;

TEST(World, AddressesOfNodes_AreWithoutPortsAndBrackets) {
  ::setenv("PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6170,node-2:6170,[fd00::1]:6170", 1);
  EXPECT_THAT(world_from_env().nodes, ElementsAre("10.0.0.1", "node-2", "fd00::1"));
  ::unsetenv("PADDLE_TRAINER_ENDPOINTS");
}

}  // namespace
}  // namespace fleet
