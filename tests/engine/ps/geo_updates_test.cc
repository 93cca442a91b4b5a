// Trainers in mode geo.
#include <gmock/gmock.h>

#include "tests/engine/ps/inline_server.h"
#include "tests/engine/ps/local_training.h"

namespace fleet::ps {
namespace {

using GeoValues = std::map<std::string, std::vector<float>>;

ServerSettings geo_mode(int64_t steps) { return {.mode = ServerMode::kGeo, .geo_steps = steps}; }

void train_geo(UpdateExecutor& rank, DenseClient& client, int trainer, int64_t step) {
  client.resume(rank.executor());
  rank.feed(gradients_at(rank.executor(), trainer), kLocalRate);
  rank.executor().run({.step = step, .flags = 1});  // local_update is the only flag
  client.update(rank.executor(), step, kLocalRate);
}

class GeoRule : public ::testing::TestWithParam<const char*> {};

TEST_P(GeoRule, OneTrainer_IsLocalTraining) {
  const UpdateJob job{.optimizer = GetParam()};
  const Program program = program_of(job, /*served=*/true);
  InlineServers servers(program, 2, 1, kOddBlocks, false, {}, geo_mode(2));
  UpdateExecutor rank(program, 1);
  const auto client = servers.client(program, 0);
  client->begin(rank.executor(), 0);
  for (int step = 0; step < 7; ++step) train_geo(rank, *client, 0, step);
  const auto want = trained_locally(job, 7, kLocalRate);
  for (const auto& [name, bytes] : want) EXPECT_EQ(rank.saved().at(name), bytes) << name;
  client->finish();
}

INSTANTIATE_TEST_SUITE_P(Rules, GeoRule,
                         ::testing::Values(R"({"name": "sgd"})", R"({"name": "momentum"})",
                                           R"({"name": "adam"})"));

// The recurrence for one trainer, between local updates.
struct GeoReference {
  GeoValues w, old = {};
  GeoValues before = {};  // w - old before the last exchange

  void step(UpdateExecutor& local, int trainer, int64_t step) {
    for (const auto& [name, own] : w) {
      local.executor().write(local.executor().program().find(name), own);
    }
    local.feed(gradients_at(local.executor(), trainer), kLocalRate);
    local.run(step);
    w = values_of(local.executor());
  }
  void exchange(int trainers, GeoValues* servers, GeoValues* sum_of_deltas) {
    for (auto& [name, own] : w) {
      std::vector<float>&o = old[name], &p = (*servers)[name], &sum = (*sum_of_deltas)[name];
      before[name].resize(own.size());
      sum.resize(own.size());
      for (size_t i = 0; i < own.size(); ++i) {
        before[name][i] = own[i] - o[i];
        const float delta = (own[i] - o[i]) / static_cast<float>(trainers);
        o[i] += delta;
        sum[i] += delta;
        p[i] += delta;
        own[i] += p[i] - o[i];
        o[i] = p[i];
      }
    }
  }
};

void expect_near(const GeoValues& got, const GeoValues& want, float tolerance) {
  for (const auto& [name, values] : want) {
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(got.at(name)[i], values[i], tolerance) << name;
    }
  }
}

TEST(Geo, ThreeTrainers_FollowTheRecurrence) {
  constexpr int kTrainers = 3, kSteps = 8, kEvery = 2;
  const Program program = program_of({.optimizer = R"({"name": "sgd"})"}, /*served=*/true);
  InlineServers servers(program, 2, kTrainers, kOddBlocks, false, {}, geo_mode(kEvery));
  std::vector<std::unique_ptr<UpdateExecutor>> ranks;
  std::vector<std::unique_ptr<DenseClient>> clients;
  std::vector<GeoReference> reference(kTrainers);
  UpdateExecutor local(program_of({.optimizer = R"({"name": "sgd"})"}, /*served=*/false), 9);
  for (int t = 0; t < kTrainers; ++t) {
    ranks.push_back(std::make_unique<UpdateExecutor>(program, t));
    clients.push_back(servers.client(program, t));
    clients[t]->begin(ranks[t]->executor(), 0);
    reference[t].w = reference[t].old = values_of(ranks[t]->executor());
  }
  const GeoValues start = reference[0].w;
  GeoValues p = start, sum;
  for (int step = 0; step < kSteps; ++step) {
    for (int t = kTrainers - 1; t >= 0; --t) {
      train_geo(*ranks[t], *clients[t], t, step);
      reference[t].step(local, t, step);
      if ((step + 1) % kEvery == 0) reference[t].exchange(kTrainers, &p, &sum);
      ASSERT_TRUE(values_of(ranks[t]->executor()) == reference[t].w) << step << ", trainer " << t;
      if ((step + 1) % kEvery != 0) continue;
      GeoValues residual = reference[t].w, want = reference[t].before;
      for (auto& [name, values] : residual) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] -= reference[t].old[name][i];
          want[name][i] *= 1 - 1.f / kTrainers;
        }
      }
      expect_near(residual, want, 1e-5f);
    }
  }
  for (int t = 0; t < kTrainers; ++t) clients[t]->synchronize(ranks[t]->executor(), false);
  for (const auto& rank : ranks) EXPECT_EQ(values_of(rank->executor()), p);
  for (auto& [name, values] : sum) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += start.at(name)[i];
  }
  expect_near(p, sum, 1e-5f);
  EXPECT_NE(p, start);
}

TEST(Geo, Evaluation_LeavesTheLocalValuesAsTheyAre) {
  const Program program = program_of({.optimizer = R"({"name": "sgd"})"}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, geo_mode(1));
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  train_geo(first, *one, 0, 0);
  const GeoValues local = values_of(first.executor());
  one->synchronize(first.executor(), /*with_states=*/true);
  one->synchronize(first.executor(), false);
  EXPECT_NE(values_of(first.executor()), local);
  one->resume(first.executor());
  EXPECT_EQ(values_of(first.executor()), local);
}

// States are each trainer's own; all begin with those of the checkpoint.
TEST(Geo, Begin_GivesTrainer0sStatesToAll) {
  const Program program = program_of({.optimizer = R"({"name": "adam"})"}, /*served=*/true);
  InlineServers servers(program, 2, 2, kOddBlocks, false, {}, geo_mode(1));
  UpdateExecutor first(program, 1), second(program, 2);
  first.feed(gradients_at(first.executor(), 0), kLocalRate);
  first.executor().run({.step = 0, .flags = 1});
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  one->begin(first.executor(), 1);
  other->begin(second.executor(), 1);
  EXPECT_EQ(first.saved(), second.saved());
}

// What was not sent in the last rounds goes along.
TEST(Geo, Settle_SendsTheStepsSinceTheLastExchange) {
  const Program program = program_of({.optimizer = R"({"name": "sgd"})"}, /*served=*/true);
  InlineServers servers(program, 1, 1, kOddBlocks, false, {}, geo_mode(100));
  UpdateExecutor rank(program, 1);
  const auto client = servers.client(program, 0);
  client->begin(rank.executor(), 0);
  train_geo(rank, *client, 0, 0);
  const GeoValues local = values_of(rank.executor());
  client->settle(rank.executor());
  client->synchronize(rank.executor(), false);
  expect_near(values_of(rank.executor()), local, 1e-6f);
}

}  // namespace
}  // namespace fleet::ps
