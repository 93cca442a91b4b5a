// Trainers of asynchronous servers.
#include <gmock/gmock.h>

#include <atomic>

#include "base/thread.h"
#include "tests/engine/ps/inline_server.h"
#include "tests/engine/ps/local_training.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

ServerSettings async_mode(int max_staleness) {
  return {.mode = ServerMode::kAsync, .max_staleness = max_staleness};
}

void train_apart(UpdateExecutor& rank, DenseClient& client, int trainer, int64_t step) {
  rank.feed(gradients_at(rank.executor(), trainer), kLocalRate);
  rank.run(step);
  client.update(rank.executor(), step, kLocalRate);
}

class AsyncRule : public ::testing::TestWithParam<const char*> {};

TEST_P(AsyncRule, OneTrainerWithoutStaleness_IsLocalTraining) {
  const UpdateJob job{.optimizer = GetParam()};
  const Program program = program_of(job, /*served=*/true);
  const auto want = trained_locally(job, 5, kLocalRate);
  for (int count = 1; count <= 3; ++count) {
    InlineServers servers(program, count, 1, kOddBlocks, false, {}, async_mode(0));
    UpdateExecutor rank(program, 1);
    const auto client = servers.client(program, 0);
    client->begin(rank.executor(), 0);
    for (int step = 0; step < 5; ++step) train_apart(rank, *client, 0, step);
    client->synchronize(rank.executor(), /*with_states=*/true);
    for (const auto& [name, bytes] : want) EXPECT_EQ(rank.saved().at(name), bytes) << name;
    client->finish();
    EXPECT_TRUE(servers.all[0]->logic().done());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, AsyncRule,
                         ::testing::Values(R"({"name": "sgd"})", R"({"name": "momentum"})",
                                           R"({"name": "adam"})"));

// With a rate of 1 and gradients of -1, each push adds 1 to each element.
void expect_every_push_once(const ServerSettings& settings) {
  constexpr int kTrainers = 3, kSteps = 12;
  const Program program = program_of({}, /*served=*/true);
  InlineServers servers(program, 2, kTrainers, kOddBlocks, false, {}, settings);
  for (const auto& server : servers.all) server->repeat_pushes();
  UpdateExecutor first(program, 1);
  for (const auto& [name, shape] : parameters_of_mlp()) {
    const std::vector<float> zeros(shape.elements());
    first.executor().write(first.executor().program().find(name), zeros);
  }
  std::vector<std::vector<float>> ones;
  for (const auto& [name, shape] : parameters_of_mlp()) ones.emplace_back(shape.elements(), -1.f);
  std::vector<Thread> threads;
  for (int t = 0; t < kTrainers; ++t) {
    threads.emplace_back("trainer" + std::to_string(t), [&, t] {
      UpdateExecutor other(program, 2);
      UpdateExecutor& rank = t == 0 ? first : other;
      const auto client = servers.client(program, t);
      client->begin(rank.executor(), 0);
      for (int step = 0; step < kSteps; ++step) {
        rank.feed(ones, 1);
        rank.run(step);
        client->update(rank.executor(), step, 1);
      }
      client->finish();
    });
  }
  for (Thread& thread : threads) thread.join();
  for (const auto& server : servers.all) {
    EXPECT_TRUE(server->logic().done());
    for (const float value : server->values()) ASSERT_EQ(value, kTrainers * kSteps);
  }
}

TEST(Async, GradientsOfOnes_AreAllAppliedOnce) {
  expect_every_push_once(async_mode(-1));
  expect_every_push_once(async_mode(1));
}

TEST(Async, MergedGradientsOfOnes_AreAllAppliedOnce) {
  ServerSettings settings = async_mode(-1);
  settings.merged_pushes = 4;
  settings.queue_size = 2;
  expect_every_push_once(settings);
  settings.independent_pulls = true;
  settings.pushes_before_pull = 2;
  expect_every_push_once(settings);
}

TEST(Async, MaxStaleness_BoundsTheStepsBetweenTrainers) {
  constexpr int kTrainers = 3, kSteps = 15, kStaleness = 2;
  const Program program = program_of({}, /*served=*/true);
  InlineServers servers(program, 2, kTrainers, kOddBlocks, false, {}, async_mode(kStaleness));
  std::vector<std::atomic<int>> begun(kTrainers);
  std::vector<Thread> threads;
  for (int t = 0; t < kTrainers; ++t) {
    threads.emplace_back("trainer" + std::to_string(t), [&, t] {
      UpdateExecutor rank(program, t);
      const auto client = servers.client(program, t);
      client->begin(rank.executor(), 0);
      for (int step = 0; step < kSteps; ++step) {
        begun[t] = step + 1;
        train_apart(rank, *client, t, step);
        for (const auto& other : begun) EXPECT_GE(other, step + 1 - kStaleness);
      }
      client->finish();
    });
  }
  for (Thread& thread : threads) thread.join();
}

TEST(Async, TrainerThatWaitsForASlowerOne_SaysSo) {
  const Program program = program_of({}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, async_mode(0));
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  std::atomic<int> calls = 0;
  one->on_wait([&] { ++calls; });
  Thread faster("faster", [&] { train_apart(first, *one, 0, 0); });
  while (calls < 2) std::this_thread::yield();
  train_apart(second, *other, 1, 0);
  faster.join();
  one->finish();
  other->finish();
}

TEST(Async, TrainerInAMeeting_HoldsNoOtherUp) {
  const Program program = program_of({}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, async_mode(0));
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  one->settle(first.executor());
  one->meet();
  for (int step = 0; step < 3; ++step) train_apart(second, *other, 1, step);
  for (const auto& server : servers.all) EXPECT_EQ(server->logic().version(), 3);
  one->finish();
  other->finish();
}

TEST(Async, Evaluation_GivesAllTrainersTheSameValues) {
  const Program program = program_of({.keeps = true}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, async_mode(-1));
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  for (int step = 0; step < 3; ++step) train_apart(first, *one, 0, step);
  train_apart(second, *other, 1, 0);
  one->settle(first.executor());
  other->settle(second.executor());
  one->synchronize(first.executor(), false);
  other->synchronize(second.executor(), false);
  EXPECT_EQ(values_of(first.executor()), values_of(second.executor()));
  EXPECT_EQ(servers.all[0]->logic().version(), 1);  // the slower one's
  one->finish();
  train_apart(second, *other, 1, 1);
  other->finish();
}

// Servers keep its place for 1000 s (InlineServer).
TEST(Async, TrainerThatNoProcessReplaces_EndsUpdates) {
  const Program program = program_of({}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, async_mode(0));
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0);
  auto other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  other.reset();
  for (const auto& server : servers.all) server->pass_until(1001);
  EXPECT_THAT(thrown_by([&] { train_apart(first, *one, 0, 0); }),
              IsError(ErrorCode::kPeerLost, testing::HasSubstr("trainer 1 at ")));
}

TEST(Async, OtherMode_IsRefused) {
  const Program program = program_of({}, /*served=*/true);
  InlineServers servers(program, 1, 1);
  servers.settings = async_mode(0);
  EXPECT_THAT(thrown_by([&] { servers.client(program, 0); }), IsUsageError("server 0"));
}

}  // namespace
}  // namespace fleet::ps
