#include "launch/starting/shared_console.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(SharedConsole, JobIsShown_ByTheFirstNodeThatWritesThere) {
  const struct {
    const char* name;
    ConsoleFacts facts;
    bool speaks;
  } cases[] = {
      {"node 0", {.node_rank = 0}, true},
      {"node 0 of srun", {.node_rank = 0, .in_step = true}, true},
      {"node 0 of --via", {.node_rank = 0, .part = true}, true},
      {"node 0, node 1 beside it", {.node_rank = 0, .same = {1}}, true},
      {"a console of its own", {.node_rank = 1}, true},
      {"--via", {.node_rank = 1, .part = true}, false},
      {"srun", {.node_rank = 1, .in_step = true}, false},
      {"srun, a file of its own", {.node_rank = 1, .in_step = true, .is_file = true}, true},
      {"ssh", {.node_rank = 1, .through_ssh = true}, false},
      {"ssh, a file of its own", {.node_rank = 1, .through_ssh = true, .is_file = true}, true},
      {"node 0 beside it", {.node_rank = 1, .same = {0}}, false},
      {"a node beside it, which one is not known", {.node_rank = 1, .same = {-1}}, false},
      {"one file for both", {.node_rank = 1, .is_file = true, .same = {0}}, false},
      {"only node 2 beside it", {.node_rank = 1, .same = {2}}, true},
  };
  for (const auto& each : cases) EXPECT_EQ(speaks_for_job(each.facts), each.speaks) << each.name;
}

}  // namespace
}  // namespace fleet
