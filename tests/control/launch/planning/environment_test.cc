#include "launch/planning/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "tests/control/launch/sample_job.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::map<std::string, std::string> as_map(const Variables& variables) {
  std::map<std::string, std::string> map;
  for (const auto& [name, value] : variables) {
    EXPECT_TRUE(map.emplace(name, value).second) << name << " is set twice";
  }
  return map;
}

TEST(TableEnvironment, IsPaddlesInItsOrder) {
  const Variables expected = {
      {"PADDLE_TRAINER_ID", "3"},
      {"PADDLE_CURRENT_ENDPOINT", "10.0.0.2:6071"},
      {"PADDLE_TRAINERS_NUM", "4"},
      {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6070,10.0.0.1:6071,10.0.0.2:6070,10.0.0.2:6071"},
      {"PADDLE_RANK_IN_NODE", "1"},
      {"PADDLE_LOCAL_DEVICE_IDS", "2,3"},
      {"PADDLE_WORLD_DEVICE_IDS", "0:1,2:3,0:1,2:3"},
      {"FLAGS_selected_gpus", "2,3"},
      {"FLAGS_selected_accelerators", "2,3"},
  };
  EXPECT_EQ(table_environment(sample_job(true), 1), expected);
}

TEST(TableEnvironment, OnCpus_NoGpuIsSelected) {
  const auto variables = as_map(table_environment(sample_job(false), 0));
  EXPECT_FALSE(variables.contains("FLAGS_selected_gpus"));
  EXPECT_FALSE(variables.contains("FLAGS_selected_accelerators"));
  EXPECT_EQ(variables.at("PADDLE_LOCAL_DEVICE_IDS"), "");
  EXPECT_EQ(variables.at("PADDLE_WORLD_DEVICE_IDS"), ",,,");
}

TEST(TableEnvironment, FurtherDialects_FollowPaddlesRows) {
  RankContext context;
  context.dialects = {"paddle", "torch", "openmpi"};
  const Variables paddles = table_environment(sample_job(true), 1);
  const Variables all = table_environment(sample_job(true), 1, context, true);
  ASSERT_GT(all.size(), paddles.size());
  EXPECT_TRUE(std::equal(paddles.begin(), paddles.end(), all.begin()));
  EXPECT_EQ(all[paddles.size()].first, "RANK");
  EXPECT_TRUE(as_map(all).contains("OMPI_COMM_WORLD_RANK"));
  EXPECT_EQ(table_environment(sample_job(true), 1, context), paddles);
}

TEST(RankEnvironment, HasTheNamesOfEveryWorld) {
  const auto variables =
      as_map(rank_environment(sample_job(false), 1, {"night", "log", "DEBUG", "", 3, 4}));
  const std::map<std::string, std::string> expected = {
      {"PADDLE_MASTER", "10.0.0.1:40000"},
      {"PADDLE_GLOBAL_SIZE", "4"},
      {"PADDLE_LOCAL_SIZE", "2"},
      {"PADDLE_GLOBAL_RANK", "3"},
      {"PADDLE_LOCAL_RANK", "1"},
      {"PADDLE_NNODES", "2"},
      {"POD_NAME", "night-1"},
      {"PADDLE_LOG_DIR", "log"},
      {"PADDLE_DISTRI_BACKEND", "gloo"},
      {"RANK", "3"},
      {"LOCAL_RANK", "1"},
      {"WORLD_SIZE", "4"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"},
      {"GROUP_WORLD_SIZE", "2"},
      {"ROLE_RANK", "3"},
      {"ROLE_NAME", "default"},
      {"ROLE_WORLD_SIZE", "4"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "40000"},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "night"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"FLEET_STORE_ADDRESS", "10.0.0.1:6768"},
      {"FLEET_JOB_ID", "night"},
      {"FLEET_GENERATION", "1"},
      {"FLEET_LOG_LEVEL", "DEBUG"},
      {"OMP_NUM_THREADS", "4"},
  };
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(variables.contains(name)) << name;
    EXPECT_EQ(variables.at(name), value) << name;
  }
}

TEST(RankEnvironment, OnGpus_NoDistriBackend) {
  EXPECT_FALSE(as_map(rank_environment(sample_job(true), 0, {"j", "log", "INFO", "", 0, 1}))
                   .contains("PADDLE_DISTRI_BACKEND"));
}

TEST(RankEnvironment, UsersOwnThreads_AreLeftAlone) {
  EXPECT_FALSE(as_map(rank_environment(sample_job(true), 0, {"j", "log", "INFO", "", 0, 0}))
                   .contains("OMP_NUM_THREADS"));
}

TEST(RankEnvironment, SecretsAreTakenOut_ProxiesStay) {
  EXPECT_THAT(removed_environment(sample_job(false), 0),
              ElementsAre("FLEET_JOB_SECRET", "FLEETD_SECRET"));
}

// Nodes of 8 ranks; this is the first. Every endpoint is of 16 characters, with its comma 17.
Assignment large_job(int ranks) {
  auto world = std::make_shared<World>();
  world->mutable_id()->set_generation(1);
  world->set_master_address("10.1.100.100");
  world->set_master_port(40000);
  for (int first = 0; first < ranks; first += 8) {
    wire::Node& node = *world->add_nodes();
    node.set_address("10.1." + std::to_string(100 + first / 8 / 100) + "." +
                     std::to_string(100 + first / 8 % 100));
    node.mutable_address()->pop_back();
    for (int rank = 0; rank < std::min(8, ranks - first); ++rank) {
      add_rank(&node, {rank}, 6070 + rank);
    }
  }
  number_ranks(world.get());
  Assignment assignment;
  assignment.world = world;
  assignment.store_address = "10.1.100.100:6768";
  return assignment;
}

RankContext large_context() {
  RankContext context;
  context.job_id = "night/1";
  context.log_dir = "/logs";
  return context;
}

// (48,000 + 1) / 17 is 2823.6.
TEST(LongValues, UpToTheBound_ListsAreInTheEnvironment) {
  const Assignment job = large_job(2823);
  EXPECT_THAT(long_values(job, large_context()), IsEmpty());
  const Variables all = rank_environment(job, 7, large_context());
  EXPECT_EQ(as_map(all).at("PADDLE_TRAINER_ENDPOINTS").size(), 2823u * 17 - 1);
  EXPECT_FALSE(as_map(all).contains("PADDLE_TRAINER_ENDPOINTS_FILE"));
}

TEST(LongValues, BeyondTheBound_AFileHasThem) {
  const Assignment job = large_job(2824);
  const auto lists = long_values(job, large_context());
  ASSERT_EQ(lists.size(), 1u);
  EXPECT_EQ(lists[0].name, "PADDLE_TRAINER_ENDPOINTS");
  EXPECT_EQ(lists[0].path, "/logs/PADDLE_TRAINER_ENDPOINTS.night_1.1");
  EXPECT_EQ(lists[0].value, join(endpoints_of(*job.world, false), ","));
  const Variables all = rank_environment(job, 7, large_context());
  EXPECT_EQ(as_map(all).at("PADDLE_TRAINER_ENDPOINTS_FILE"), lists[0].path);
  EXPECT_FALSE(as_map(all).contains("PADDLE_TRAINER_ENDPOINTS"));
}

// Linux: 128 KiB a string, 2 MiB for all by default.
TEST(LongValues, WorldOf100000Ranks_EveryEnvironmentCanBeStarted) {
  const Assignment job = large_job(100000);
  EXPECT_THAT(long_values(job, large_context()), ::testing::SizeIs(2));  // and the devices
  for (const Variables& variables :
       {rank_environment(job, 7, large_context()), table_environment(job, 7, large_context())}) {
    size_t total = 0;
    for (const auto& [name, value] : variables) total += name.size() + value.size() + 2;
    EXPECT_LT(total, 8192u);
  }
}

TEST(LongValues, WorldOf5000Ranks_NothingOfAnOuterJobRemains) {
  const Variables all = rank_environment(large_job(5000), 0, large_context());
  EXPECT_THAT(removed_environment(large_job(5000), 0, all),
              ::testing::Contains("PADDLE_TRAINER_ENDPOINTS"));
}

// Node 1 of two; each has one parameter server and two trainers.
Assignment with_servers() {
  Assignment assignment = sample_job(false);
  auto world = std::make_shared<World>(*assignment.world);
  for (wire::Node& node : *world->mutable_nodes()) {
    node.set_servers(1);
    add_rank(&node, {}, 6072);
  }
  world->set_run("run-1");
  number_ranks(world.get());
  assignment.world = world;
  return assignment;
}

TEST(RoleEnvironment, Trainer_HasPaddlesNames) {
  const RankContext context = {"night", "log", "INFO", "1", 0, 2};
  const std::map<std::string, std::string> expected = {
      {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:6070,10.0.0.2:6070"},
      {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6071,10.0.0.1:6072,10.0.0.2:6071,10.0.0.2:6072"},
      {"PADDLE_TRAINERS_NUM", "4"},
      {"PADDLE_ROLE", "TRAINER"},
      {"TRAINING_ROLE", "TRAINER"},
      {"PADDLE_TRAINER_ID", "3"},
      {"PADDLE_PORT", "6072"},
      {"POD_IP", "10.0.0.2"},
      {"PADDLE_NNODES", "2"},
      {"PADDLE_LOG_DIR", "log"},
      {"PADDLE_WITH_GLOO", "1"},
      {"PADDLE_GLOO_RENDEZVOUS", "3"},
      {"PADDLE_GLOO_FS_PATH", "log/gloo"},
      {"PADDLE_GLOO_HTTP_ENDPOINT", "10.0.0.1:40000"},
      {"FLEET_STORE_ADDRESS", "10.0.0.1:6768"},
      {"FLEET_JOB_ID", "night"},
      {"FLEET_GENERATION", "1"},
      {"FLEET_RUN", "run-1"},
      {"FLEET_LOG_LEVEL", "INFO"},
      {"OMP_NUM_THREADS", "2"},
  };
  EXPECT_EQ(as_map(rank_environment(with_servers(), 2, context)), expected);
}

TEST(RoleEnvironment, TrainerWithAGpu_IsToldItsNumber) {
  Assignment assignment = with_servers();
  auto world = std::make_shared<World>(*assignment.world);
  for (int rank = 1; rank < 3; ++rank) {
    world->mutable_nodes(0)->mutable_devices(rank)->add_ids(rank + 4);
    world->mutable_nodes(1)->mutable_devices(rank)->add_ids(rank + 4);
  }
  assignment.world = world;
  const auto variables = [&](int local_rank) {
    return as_map(rank_environment(assignment, local_rank, {"night", "log", "INFO", "0", 0, 1}));
  };
  EXPECT_EQ(variables(2).at("FLAGS_selected_gpus"), "6");
  EXPECT_FALSE(variables(0).contains("FLAGS_selected_gpus"));
}

TEST(RoleEnvironment, Server_IsNoTrainer) {
  const auto variables =
      as_map(rank_environment(with_servers(), 0, {"night", "log", "INFO", "0", 0, 1}));
  EXPECT_EQ(variables.at("TRAINING_ROLE"), "PSERVER");
  EXPECT_EQ(variables.at("PADDLE_PORT"), "6070");
  EXPECT_EQ(variables.at("PADDLE_WITH_GLOO"), "0");
  EXPECT_FALSE(variables.contains("PADDLE_TRAINER_ID"));
  EXPECT_THAT(removed_environment(with_servers(), 0), ::testing::Contains("PADDLE_TRAINER_ID"));
}

// The launcher may run inside a process of a job with servers.
TEST(RoleEnvironment, CollectiveJob_HasNoServersOfAnOuterJob) {
  ::setenv("PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:1", 1);
  EXPECT_THAT(removed_environment(sample_job(false), 0),
              ::testing::Contains("PADDLE_PSERVERS_IP_PORT_LIST"));
  EXPECT_THAT(removed_environment(with_servers(), 0),
              ::testing::Not(::testing::Contains("PADDLE_PSERVERS_IP_PORT_LIST")));
  ::unsetenv("PADDLE_PSERVERS_IP_PORT_LIST");
}

TEST(RoleEnvironment, StepsFile_IsOfTrainersOnly) {
  RankContext context;
  context.steps_file = "/logs/workerlog.0.steps";
  EXPECT_EQ(as_map(rank_environment(sample_job(false), 0, context)).at("FLEET_STEPS_FILE"),
            "/logs/workerlog.0.steps");
  EXPECT_FALSE(as_map(rank_environment(with_servers(), 0, context)).contains("FLEET_STEPS_FILE"));
  EXPECT_THAT(removed_environment(with_servers(), 0), ::testing::Contains("FLEET_STEPS_FILE"));
}

}  // namespace
}  // namespace fleet
