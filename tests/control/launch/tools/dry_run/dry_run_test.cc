#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "launch/tools/dry_run/print_plan.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void add(const std::string& name, const std::string& value, wire::RankCommand* command) {
  wire::NamedValue* variable = command->add_environment();
  variable->set_name(name);
  variable->set_value(value);
}

// Two nodes, of one rank and of two.
DryRunPlan sample(const std::string& list = "a,b") {
  DryRunPlan job;
  job.job_id = "night";
  job.rendezvous = "10.0.0.1:6768";
  job.notes = {"something is assumed"};
  auto world = std::make_shared<World>();
  for (const char* address : {"10.0.0.1", "10.0.0.2"}) world->add_nodes()->set_address(address);
  add_rank(world->mutable_nodes(0), {0, 1}, 6070);
  for (const int port : {6070, 6071}) add_rank(world->mutable_nodes(1), {}, port);
  number_ranks(world.get());
  job.assignment.world = world;
  job.program = {"/bin/prog", "x"};
  job.removed = {"http_proxy"};
  job.findings = {ok("cores", "2 cores"), warn("/dev/shm", "64 MiB free", "--shm-size=8g")};
  job.inherited = {{"EDITOR", "it's vi"}, {"WANDB_API_KEY", "s3cret"}, {"BASH_FUNC_f%%", "() {}"}};
  const Variables alike = {{"WORLD_SIZE", "3"}, {"A_TOKEN", "t0p"}, {"LIST", list}};
  job.for_each_rank = [alike](int wanted, const DryRunPlan::Visitor& see) {
    for (int rank = 0; rank < 3; ++rank) {
      if (wanted >= 0 && rank != wanted) continue;
      wire::RankCommand command;
      for (const auto& [name, value] : alike) add(name, value, &command);
      add("RANK", std::to_string(rank), &command);
      command.add_removed("http_proxy");
      if (rank == 0) command.add_cores(0), command.add_cores(2);
      command.set_log_path("log/workerlog." + std::to_string(rank == 2));
      see({rank > 0, rank == 2, false, rank, command});
    }
  };
  return job;
}

std::string table(const DryRunPlan& job, int rank = -1) {
  std::ostringstream out;
  write_dry_run_table(job, rank, out);
  return out.str();
}
std::string json(const DryRunPlan& job, int rank = -1) {
  std::ostringstream out;
  write_dry_run_json(job, rank, out);
  return out.str();
}
std::string shell(const DryRunPlan& job, int rank, bool masked_secrets) {
  std::ostringstream out;
  write_dry_run_shell(job, rank, masked_secrets, out);
  return out.str();
}

TEST(DryRunTable, ShowsPlacesAndVariables) {
  const std::string text = table(sample());
  EXPECT_THAT(text, HasSubstr("job 'night': 3 processes on 2 nodes; dry run, nothing starts"));
  EXPECT_THAT(text, HasSubstr("rank 0  0     10.0.0.1  0           0,1   0,2    10.0.0.1:6070  "
                              "log/workerlog.0"));
  EXPECT_THAT(text, HasSubstr("rank 2  1     10.0.0.2  1           -     -      10.0.0.2:6071  "
                              "log/workerlog.1"));
  EXPECT_THAT(text, HasSubstr("every rank gets\n  WORLD_SIZE  3\n  A_TOKEN"));
  EXPECT_THAT(text, AllOf(HasSubstr("EDITOR         it's vi"), HasSubstr("but not http_proxy")));
}

TEST(DryRunTable, WhatTheDoctorComplainsOf_IsShown) {
  EXPECT_THAT(table(sample()), HasSubstr("warning     /dev/shm: 64 MiB free; --shm-size=8g\n"));
}

TEST(DryRunTable, SecretsAreMasked) {
  const std::string text = table(sample()) + json(sample());
  EXPECT_THAT(text, AllOf(HasSubstr("WANDB_API_KEY"), HasSubstr("A_TOKEN"), HasSubstr("******")));
  EXPECT_EQ(text.find("s3cret"), std::string::npos);
  EXPECT_EQ(text.find("t0p"), std::string::npos);
}

TEST(DryRunTable, LongValues_AreShortened) {
  const DryRunPlan job = sample(std::string(40000, 'x') + "end");
  const std::string text = table(job);
  EXPECT_THAT(text, HasSubstr("xend (40003 characters; --format json shows them)\n"));
  EXPECT_LT(text.size(), 4000u);
  EXPECT_GT(json(job, 0).size(), 40000u);
}

TEST(DryRunTable, OneRank_IsShownAloneAndWhole) {
  EXPECT_THAT(table(sample(), 1), AllOf(HasSubstr("rank 1 gets\n  WORLD_SIZE  3\n"),
                                        Not(HasSubstr("every rank gets"))));
}

// Of many ranks those of this node, and what all have.
TEST(DryRunTable, LargeJob_ShowsEveryPlaceButNotEveryEnvironment) {
  DryRunPlan job = sample();
  auto world = std::make_shared<World>();
  for (int node = 0; node < 100; ++node) {
    world->add_nodes()->set_address("n" + std::to_string(node));
    add_rank(world->mutable_nodes(node), {}, 6070);
  }
  number_ranks(world.get());
  job.assignment.world = world;
  job.assignment.node_rank = 7;
  job.for_each_rank = [](int, const DryRunPlan::Visitor& see) {
    for (int rank = 0; rank < 100; ++rank) {
      wire::RankCommand command;
      add("SIZE", "100", &command);
      add("RANK", std::to_string(rank), &command);
      see({rank, 0, false, rank, command});
    }
  };
  const std::string text = table(job);
  EXPECT_THAT(text, AllOf(HasSubstr("every rank gets\n  SIZE  100\n"),
                          HasSubstr("rank 7 gets\n  RANK  7\n"), Not(HasSubstr("rank 8 gets"))));
}

TEST(DryRunJson, HasEverything) {
  const auto job = nlohmann::json::parse(json(sample()));
  EXPECT_EQ(job["job_id"], "night");
  EXPECT_EQ(job["world_size"], 3);
  EXPECT_EQ(job["nnodes"], 2);
  EXPECT_EQ(job["program"], (std::vector<std::string>{"/bin/prog", "x"}));
  EXPECT_EQ(job["findings"].size(), 2u);
  EXPECT_EQ(job["findings"][1]["severity"], "warn");
  ASSERT_EQ(job["ranks"].size(), 3u);
  EXPECT_EQ(job["ranks"][0]["gpus"], (std::vector<int>{0, 1}));
  EXPECT_EQ(job["ranks"][0]["cores"], (std::vector<int>{0, 2}));
  EXPECT_EQ(job["ranks"][2]["endpoint"], "10.0.0.2:6071");
  EXPECT_EQ(job["ranks"][2]["environment"]["RANK"], "2");
  EXPECT_EQ(job["inherited"]["EDITOR"], "it's vi");
  EXPECT_EQ(nlohmann::json::parse(json(sample(), 1))["ranks"].size(), 1u);
}

TEST(DryRunShell, CanBeEvaluated) {
  EXPECT_EQ(shell(sample(), 2, false),
            "# rank 2 of 3 (local rank 1 of node 1, 10.0.0.2)\n"
            "unset http_proxy\n"
            "export EDITOR='it'\\''s vi'\n"
            "export WANDB_API_KEY=s3cret\n"
            "export WORLD_SIZE=3\n"
            "export A_TOKEN=t0p\n"
            "export LIST=a,b\n"
            "export RANK=2\n");
}

TEST(DryRunShell, OnATerminal_HasNoSecrets) {
  const std::string text = shell(sample(), 2, true);
  EXPECT_EQ(text.find("s3cret"), std::string::npos);
  EXPECT_EQ(text.find("t0p"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("# WANDB_API_KEY is not shown on a terminal"));
}

TEST(DryRun, RankThatIsNotThere_IsAnError) {
  EXPECT_THROW(table(sample(), 3), Error);
  EXPECT_THROW(json(sample(), 3), Error);
  EXPECT_THROW(shell(sample(), 3, false), Error);
}

}  // namespace
}  // namespace fleet
