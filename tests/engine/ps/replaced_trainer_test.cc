// Processes that take the places of lost trainers, in async and geo.
#include <gmock/gmock.h>

#include "tests/engine/ps/inline_server.h"
#include "tests/engine/ps/local_training.h"

namespace fleet::ps {
namespace {

class ReplacedTrainer : public ::testing::TestWithParam<ServerSettings> {
 protected:
  static void train(UpdateExecutor& rank, DenseClient& client, int trainer, int64_t step) {
    rank.feed(gradients_at(rank.executor(), trainer), kLocalRate);
    rank.run(step);
    client.update(rank.executor(), step, kLocalRate);
  }
};

TEST_P(ReplacedTrainer, NextProcess_HasTheServersValuesAndGoesOnFromTheirStep) {
  const Program program = program_of({.keeps = true}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, GetParam());
  UpdateExecutor first(program, 1), second(program, 2), third(program, 3);
  const auto one = servers.client(program, 0);
  auto other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  for (int step = 0; step < 3; ++step) train(second, *other, 1, step);
  other->settle(second.executor());
  const uint64_t shares = other->shares();
  other.reset();  // without a goodbye
  EXPECT_FALSE(servers.all[0]->logic().error());

  const auto next = servers.client(program, 1, /*incarnation=*/1);
  const auto taken = next->take_place(third.executor(), shares);
  EXPECT_EQ(taken.steps, 3);
  EXPECT_EQ(taken.missing, 0);
  train(third, *next, 1, taken.steps);
  train(first, *one, 0, 0);
  for (const auto& client : {one.get(), next.get()}) {
    UpdateExecutor& rank = client == one.get() ? first : third;
    client->settle(rank.executor());
  }
  // The exchange of kept variables has the same number on both.
  one->synchronize(first.executor(), false);
  next->synchronize(third.executor(), false);
  EXPECT_EQ(values_of(first.executor()), values_of(third.executor()));
  one->finish();
  next->finish();
  EXPECT_TRUE(servers.all[0]->logic().done());
}

// Trainer 0's exchanges go on counting: the servers take its next values for new ones.
TEST_P(ReplacedTrainer, Trainer0_SharesItsVariablesAgain) {
  const Program program = program_of({.keeps = true}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, GetParam());
  UpdateExecutor first(program, 1), second(program, 2), third(program, 3);
  auto one = servers.client(program, 0);
  const auto other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  const uint64_t shares = one->shares();
  one.reset();
  const auto next = servers.client(program, 0, /*incarnation=*/1);
  next->take_place(third.executor(), shares);
  const std::vector<float> mean = {1, 2, 3};
  third.executor().write(third.executor().program().find("running_mean"), mean);
  next->synchronize(third.executor(), false);
  other->synchronize(second.executor(), false);
  EXPECT_EQ(value_of(second.executor(), "running_mean"), mean);
  EXPECT_EQ(values_of(second.executor()), values_of(third.executor()));
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ReplacedTrainer,
    ::testing::Values(ServerSettings{.mode = ServerMode::kAsync},
                      ServerSettings{.mode = ServerMode::kAsync, .max_staleness = 9},
                      ServerSettings{.mode = ServerMode::kGeo, .geo_steps = 1}));

}  // namespace
}  // namespace fleet::ps
