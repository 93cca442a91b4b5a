// A launcher's part in the replacement of a trainer.
#include <signal.h>

#include "tests/control/node/supervised.h"

namespace fleet {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;

// This node of the sample job with its first rank as a parameter server.
Assignment served() {
  Assignment assignment = sample_assignment();
  auto world = std::make_shared<World>(*assignment.world);
  world->mutable_nodes(1)->set_servers(1);
  number_ranks(world.get());
  assignment.world = world;
  return assignment;
}

RankExit killed_trainer() {
  RankExit exit = ended(1, 0, SIGKILL, "");
  exit.set_replaceable(true);
  return exit;
}

wire::ReplaceCommand replacement_of(const RankExit& exit, int node_rank) {
  wire::ReplaceCommand command;
  command.set_generation(1);
  *command.mutable_exit() = exit;
  command.mutable_exit()->set_node_rank(node_rank);
  command.set_message("rank 2 was killed");
  command.set_ordinal(2);
  return command;
}

TEST_F(SupervisionTest, ReplaceableTrainer_IsStartedAgainWhenTheHostSaysSo) {
  run(served());
  EXPECT_CALL(effects, report(AllOf(Property(&RankExit::replaceable, true),
                                    Property(&RankExit::server, false))));
  supervision.on_rank_ended(killed_trainer(), start);
  EXPECT_CALL(effects, warn(HasSubstr("rank 2 was killed")));
  EXPECT_CALL(effects, replace_rank(1, 2));
  supervision.on_replace_command(replacement_of(killed_trainer(), 1));
  EXPECT_CALL(effects, finish_node());
  supervision.on_rank_ended(ended(1, 0, 0, ""), start);
}

TEST_F(SupervisionTest, TrainerOfAnotherNode_IsOnlyReported) {
  run(served());
  EXPECT_CALL(effects, warn(_));
  supervision.on_replace_command(replacement_of(killed_trainer(), 0));
}

TEST_F(SupervisionTest, HostThatReplacesNothing_EndsTheJobByItsVerdict) {
  run(served());
  EXPECT_CALL(effects, report(_));
  supervision.on_rank_ended(killed_trainer(), start);
  EXPECT_CALL(effects, print_verdict(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(failed_verdict(2, 0, SIGKILL));
}

TEST_F(SupervisionTest, TrainerThatEndsWhileTheJobStops_IsNotReplaceable) {
  run(served());
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_stop_command(stop_command(SIGTERM), start);
  EXPECT_CALL(effects, report(Property(&RankExit::replaceable, false)));
  supervision.on_rank_ended(killed_trainer(), start);
  EXPECT_CALL(effects, warn(_));
  supervision.on_replace_command(replacement_of(killed_trainer(), 1));
}

}  // namespace
}  // namespace fleet
