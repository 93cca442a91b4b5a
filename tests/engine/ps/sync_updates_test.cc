// Synchronous updates on servers have the bits of a collective job.
#include <gmock/gmock.h>

#include <cmath>

#include "base/thread.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/ps/inline_server.h"
#include "tests/engine/train/async_copy_device.h"

namespace fleet::ps {
namespace {

constexpr int kSteps = 3;
constexpr float kRates[kSteps] = {0.1f, 0.05f, 0.2f};

using Saved = std::map<std::string, std::vector<std::byte>>;

// The gradients of each step as the ranks of a collective job add them up (comm.backend).
std::vector<std::vector<std::vector<float>>> sums_of(const Gradients& gradients,
                                                     const std::string& backend, DType dtype) {
  const int ranks = static_cast<int>(gradients[0].size());
  std::vector<std::vector<std::vector<float>>> sums;
  for (const auto& step : gradients) sums.push_back(step[0]);
  run_ranks(on_one_host(backend, ranks), [&](Rank& self) {
    for (int step = 0; step < kSteps; ++step) {
      for (size_t p = 0; p < sums[step].size(); ++p) {
        const std::vector<float>& own = gradients[step][self.comm.rank()][p];
        std::vector<float> wide = own;
        std::vector<BFloat16> narrow(own.begin(), own.end());
        void* data = dtype == DType::kFloat32 ? static_cast<void*>(wide.data()) : narrow.data();
        const View view{data, own.size(), dtype};
        self.comm.all_reduce(view, view, ReduceOp::kSum, self.stream);
        self.finish();
        if (dtype == DType::kBFloat16) wide.assign(narrow.begin(), narrow.end());
        if (self.comm.rank() == 0) sums[step][p] = wide;
      }
    }
  });
  return sums;
}

struct Scenario {
  int first_step = 0;
  Saved from = {};         // a checkpoint; empty: initial values
  int bad_loss_step = -1;  // of the last trainer
  bool repeats = false;    // each push arrives several times
};

float loss_of(const Scenario& run, int step, bool last) {
  return step == run.bad_loss_step && last ? INFINITY : 1.f;
}

// All states of a rank of the collective job afterwards.
Saved collective(const UpdateJob& job, const Gradients& gradients,
                 const std::string& backend = "inprocess", const Scenario& run = {}) {
  const auto sums = sums_of(gradients, backend, job.gradients);
  UpdateExecutor rank(program_of(job, /*served=*/false), 1);
  rank.load(run.from);
  for (int step = 0; step < kSteps; ++step) {
    rank.feed(sums[step], kRates[step], loss_of(run, step, /*last=*/true));
    rank.run(run.first_step + step);
  }
  return rank.saved();
}

// By trainer. Trainer 0's includes the states of the servers.
std::vector<Saved> served(const UpdateJob& job, const Gradients& gradients, int servers,
                          const PlacementOptions& placement = {.min_elements = 5, .alignment = 1},
                          const Scenario& run = {}) {
  const int trainers = static_cast<int>(gradients[0].size());
  const Program program = program_of(job, /*served=*/true);
  InlineServers all(program, servers, trainers, placement, /*shuffled=*/true);
  for (const auto& server : all.all) {
    if (run.repeats) server->repeat_pushes();
  }
  std::vector<Saved> saved(trainers);
  std::vector<Thread> threads;
  for (int t = 0; t < trainers; ++t) {
    threads.emplace_back("trainer" + std::to_string(t), [&, t] {
      UpdateExecutor rank(program, t == 0 ? 1 : 100 + t);
      const auto client = all.client(program, t);
      if (t == 0) rank.load(run.from);
      client->begin(rank.executor(), run.first_step);
      for (int step = 0; step < kSteps; ++step) {
        rank.feed(gradients[step][t], kRates[step], loss_of(run, step, t == trainers - 1));
        rank.run(run.first_step + step);
        client->update(rank.executor(), run.first_step + step, kRates[step]);
      }
      client->synchronize(rank.executor(), /*with_states=*/true);
      saved[t] = rank.saved();
      client->finish();
    });
  }
  for (Thread& thread : threads) thread.join();
  for (const auto& server : all.all) EXPECT_TRUE(server->logic().done());
  return saved;
}

void expect_equal_parameters(const Saved& got, const Saved& want) {
  for (const auto& [name, shape] : parameters_of_mlp())
    EXPECT_EQ(got.at(name), want.at(name)) << name;
}

void expect_as_collective(const UpdateJob& job, int servers, int trainers,
                          const PlacementOptions& placement = {.min_elements = 5, .alignment = 1}) {
  SCOPED_TRACE(job.optimizer + ", " + std::to_string(servers) + " servers, " +
               std::to_string(trainers) + " trainers");
  const Gradients gradients = random_gradients(kSteps, trainers);
  const Saved want = collective(job, gradients);
  const std::vector<Saved> got = served(job, gradients, servers, placement);
  ASSERT_EQ(got[0].size(), want.size());
  for (const auto& [name, bytes] : want) EXPECT_EQ(got[0].at(name), bytes) << name;
  for (const Saved& trainer : got) expect_equal_parameters(trainer, want);
}

class SyncUpdates : public ::testing::TestWithParam<std::string> {};

TEST_P(SyncUpdates, OneToFourServersAndTrainers_HaveTheBitsOfACollectiveJob) {
  for (int servers = 1; servers <= 4; ++servers) {
    for (int trainers = 1; trainers <= 4; ++trainers) {
      expect_as_collective({.optimizer = GetParam()}, servers, trainers);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, SyncUpdates,
    ::testing::Values(R"({"name": "sgd", "weight_decay": 0.01})",
                      R"({"name": "momentum", "momentum": 0.9, "weight_decay": 0.01})",
                      R"({"name": "adam"})"));

// Each with several blocks of a parameter.
TEST(SyncUpdatesOf, EachRule_HaveTheBitsOfACollectiveJob) {
  for (const std::string& name : optimizer_registry().names()) {
    // Servers do not support these.
    if (name == "muon" || name == "adafactor" || name.starts_with("schedule_free")) continue;
    expect_as_collective({.optimizer = R"({"name": ")" + name + R"("})"}, 3, 3);
  }
}

TEST(SyncUpdatesOf, GroupsAndClipping_HaveTheBitsOfACollectiveJob) {
  for (const std::string keys :
       {R"("groups": ["*bias: rate=0.3 weight_decay=0", "fc2*: rate=2"], "weight_decay": 0.1)",
        R"("clip": "value", "clip_value": 0.5)", R"("clip": "norm", "clip_norm": 0.5)"}) {
    expect_as_collective({.optimizer = R"({"name": "adamw", )" + keys + "}"}, 3, 2);
  }
}

TEST(SyncUpdatesOf, ClippingByTheGlobalNorm_HaveTheBitsOfACollectiveJob) {
  for (const int servers : {1, 2, 3, 8}) {
    expect_as_collective({.optimizer = R"({"name": "sgd", "clip": "global_norm"})"}, servers, 3);
    expect_as_collective({.optimizer = R"({"name": "adam", "clip": "global_norm"})"}, servers, 2,
                         PlacementOptions());
  }
  expect_as_collective({.optimizer = R"({"name": "lamb", "clip": "global_norm"})",
                        .checks = true,
                        .averages = true,
                        .gradients = DType::kBFloat16},
                       3, 2);
}

TEST(SyncUpdatesOf, AveragesCountersAndFrozenParameters_HaveTheBitsOfACollectiveJob) {
  expect_as_collective({.optimizer = R"({"name": "adam"})", .averages = true}, 3, 2);
  expect_as_collective({.optimizer = R"({"name": "adam"})", .checks = true, .keeps = true}, 3, 2);
}

TEST(SyncUpdatesOf, Checkpoint_GoOnLikeACollectiveJob) {
  const UpdateJob job{.optimizer = R"({"name": "adam"})", .averages = true};
  const Gradients gradients = random_gradients(kSteps, 2);
  const Saved checkpoint = served(job, gradients, 3)[0];
  const Scenario resumed{.first_step = kSteps, .from = checkpoint};
  const Saved want = collective(job, gradients, "inprocess", resumed);
  const Saved got = served(job, gradients, 2, {.min_elements = 5, .alignment = 1}, resumed)[0];
  EXPECT_NE(got, checkpoint);
  for (const auto& [name, bytes] : want) EXPECT_EQ(got.at(name), bytes) << name;
}

// Also the states by which the host notices.
TEST(SyncUpdatesOf, GradientThatIsNotFinite_IsLeftOutAsInACollectiveJob) {
  const UpdateJob job{.optimizer = R"({"name": "adam"})", .checks = true};
  Gradients gradients = random_gradients(kSteps, 3);
  gradients[1][2][4][7] = NAN;
  const Saved want = collective(job, gradients);
  for (const Saved& got : served(job, gradients, 2)) {
    expect_equal_parameters(got, want);
    for (const char* name : {kFiniteRecordName, kSkippedUpdatesName}) {
      EXPECT_EQ(got.at(name), want.at(name)) << name;
    }
  }
}

TEST(SyncUpdatesOf, LossOfOneTrainerThatIsNotFinite_LeavesTheUpdateOutForAll) {
  const UpdateJob job{.optimizer = R"({"name": "momentum"})", .checks = true};
  const Gradients gradients = random_gradients(kSteps, 2);
  const Scenario run{.bad_loss_step = kSteps - 1};
  const Saved want = collective(job, gradients, "inprocess", run);
  const auto got = served(job, gradients, 2, {.min_elements = 5, .alignment = 1}, run);
  for (const Saved& one : got) {
    expect_equal_parameters(one, want);
    EXPECT_EQ(one.at(kSkippedUpdatesName), want.at(kSkippedUpdatesName));
  }
  EXPECT_EQ(got[1].at(kFiniteRecordName), want.at(kFiniteRecordName));
  EXPECT_NE(got[0].at(kFiniteRecordName), want.at(kFiniteRecordName));  // its own loss was good
}

TEST(SyncUpdatesOf, GradientsIn16Bits_HaveTheBitsOfACollectiveJob) {
  expect_as_collective({.optimizer = R"({"name": "momentum"})", .gradients = DType::kBFloat16}, 2,
                       3);
}

// As on a GPU: the host reads no memory of the device, and copies run on a thread of their own.
TEST(SyncUpdatesOf, DeviceWithItsOwnMemory_HasTheBitsOfACollectiveJob) {
  const UpdateJob job{.optimizer = R"({"name": "adam"})", .checks = true, .averages = true};
  const Program program = program_of(job, /*served=*/true);
  Gradients gradients = random_gradients(kSteps, 1);
  gradients[1][0][2][3] = NAN;
  InlineServers servers(program, 2, 1);
  UpdateExecutor rank(program, 1, std::make_unique<AsyncCopyDevice>());
  const auto client = servers.client(program, 0);
  client->begin(rank.executor(), 0);
  for (int step = 0; step < kSteps; ++step) {
    rank.feed(gradients[step][0], kRates[step]);
    rank.run(step);
    client->update(rank.executor(), step, kRates[step]);
  }
  client->synchronize(rank.executor(), /*with_states=*/true);
  EXPECT_EQ(rank.saved(), collective(job, gradients));
}

TEST(SyncUpdatesOf, RepeatedPushes_HaveTheBitsOfACollectiveJob) {
  for (const std::string clip : {"", R"(, "clip": "global_norm")"}) {
    const UpdateJob job{.optimizer = R"({"name": "adam")" + clip + "}"};
    const Gradients gradients = random_gradients(kSteps, 3);
    const Saved want = collective(job, gradients);
    const auto got =
        served(job, gradients, 2, {.min_elements = 5, .alignment = 1}, {.repeats = true});
    for (const auto& [name, bytes] : want) EXPECT_EQ(got[0].at(name), bytes) << name;
  }
}

TEST(SyncUpdatesOf, BlocksOfALimitedSize_HaveTheBitsOfACollectiveJob) {
  const PlacementOptions placement{.min_elements = 5, .alignment = 1, .max_elements = 100};
  expect_as_collective({.optimizer = R"({"name": "adam", "clip": "global_norm"})"}, 1, 2,
                       placement);
  expect_as_collective({.optimizer = R"({"name": "momentum"})", .averages = true}, 3, 2, placement);
}

TEST(SyncUpdatesOf, UsualBlockSizes_HaveTheBitsOfACollectiveJob) {
  expect_as_collective({.optimizer = R"({"name": "adam"})"}, 2, 2, PlacementOptions());
}

TEST(SyncUpdatesOf, ServersWithoutBlocks_HaveTheBitsOfACollectiveJob) {
  expect_as_collective({.optimizer = R"({"name": "adam"})"}, 8, 2, PlacementOptions());
  expect_as_collective({.optimizer = R"({"name": "sgd"})"}, 8, 1, PlacementOptions());
}

TEST(SyncUpdatesOf, SharedMemoryOfACollectiveJob_AddsUpInTheSameOrder) {
  const UpdateJob job{.optimizer = R"({"name": "adam"})"};
  const Gradients gradients = random_gradients(kSteps, 3);
  expect_equal_parameters(served(job, gradients, 2)[1], collective(job, gradients, "shm"));
}

}  // namespace
}  // namespace fleet::ps
