#include "launch/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two nodes, of one rank and of two.
ForeseenJob sample() {
  ForeseenJob job;
  job.job_id = "night";
  job.rendezvous = "10.0.0.1:6768";
  job.notes = {"something is assumed"};
  auto world = std::make_shared<World>();
  world->nodes = {{"10.0.0.1", "", 0, 0, {{0, 1}}, {6070}},
                  {"10.0.0.2", "", 1, 1, {{}, {}}, {6070, 6071}}};
  world->world_size = 3;
  job.assignment.world = world;
  for (int rank = 0; rank < 3; ++rank) {
    RankCommand command;
    command.argv = {"/bin/prog", "x"};
    command.environment = {{"RANK", std::to_string(rank)}, {"A_TOKEN", "t0p"}};
    command.removed = {"http_proxy"};
    if (rank == 0) command.cores = {0, 2};
    command.log_path = "log/workerlog." + std::to_string(rank == 2);
    job.ranks.push_back({rank > 0, rank == 2, false, rank, command});
  }
  job.inherited = {{"EDITOR", "it's vi"}, {"WANDB_API_KEY", "s3cret"}, {"BASH_FUNC_f%%", "() {}"}};
  return job;
}

TEST(DryRunTable, ShowsPlacesAndVariables) {
  const std::string text = dry_run_table(sample(), -1);
  EXPECT_THAT(text, HasSubstr("job 'night': 3 processes on 2 nodes; nothing is started"));
  EXPECT_THAT(text, HasSubstr("note        something is assumed"));
  EXPECT_THAT(text, HasSubstr("rank 0  0     10.0.0.1  0           0,1   0,2    10.0.0.1:6070  "
                              "log/workerlog.0"));
  EXPECT_THAT(text, HasSubstr("rank 2  1     10.0.0.2  1           -     -      10.0.0.2:6071  "
                              "log/workerlog.1"));
  EXPECT_THAT(text, HasSubstr("rank 2 gets\n  RANK     2\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("EDITOR         it's vi"), HasSubstr("but not http_proxy")));
}

TEST(DryRunTable, SecretsAreMasked) {
  const std::string text = dry_run_table(sample(), -1) + dry_run_json(sample(), -1);
  EXPECT_THAT(text, AllOf(HasSubstr("WANDB_API_KEY"), HasSubstr("A_TOKEN"), HasSubstr("******")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("s3cret")), Not(HasSubstr("t0p"))));
}

TEST(DryRunTable, LongValues_AreShortened) {
  ForeseenJob job = sample();
  job.ranks[0].command.environment.emplace_back("LIST", std::string(40000, 'x') + "end");
  const std::string text = dry_run_table(job, -1);
  EXPECT_THAT(text, HasSubstr("xend (40003 characters; --format json has them)\n"));
  EXPECT_LT(text.size(), 4000u);
  EXPECT_GT(dry_run_json(job, 0).size(), 40000u);
}

TEST(DryRunTable, OneRank_IsShownAlone) {
  const std::string text = dry_run_table(sample(), 1);
  EXPECT_THAT(text, AllOf(HasSubstr("rank 1 gets"), Not(HasSubstr("rank 0 gets"))));
}

TEST(DryRunJson, HasEverything) {
  const auto job = nlohmann::json::parse(dry_run_json(sample(), -1));
  EXPECT_EQ(job["job_id"], "night");
  EXPECT_EQ(job["world_size"], 3);
  EXPECT_EQ(job["nnodes"], 2);
  EXPECT_EQ(job["program"], (std::vector<std::string>{"/bin/prog", "x"}));
  ASSERT_EQ(job["ranks"].size(), 3u);
  EXPECT_EQ(job["ranks"][0]["gpus"], (std::vector<int>{0, 1}));
  EXPECT_EQ(job["ranks"][0]["cores"], (std::vector<int>{0, 2}));
  EXPECT_EQ(job["ranks"][2]["endpoint"], "10.0.0.2:6071");
  EXPECT_EQ(job["ranks"][2]["environment"]["RANK"], "2");
  EXPECT_EQ(job["inherited"]["EDITOR"], "it's vi");
  EXPECT_EQ(nlohmann::json::parse(dry_run_json(sample(), 1))["ranks"].size(), 1u);
}

TEST(DryRunShell, CanBeEvaluated) {
  EXPECT_EQ(dry_run_shell(sample(), 2, false),
            "# rank 2 of 3 (local rank 1 of node 1, 10.0.0.2)\n"
            "unset http_proxy\n"
            "export EDITOR='it'\\''s vi'\n"
            "export WANDB_API_KEY='s3cret'\n"
            "export RANK='2'\n"
            "export A_TOKEN='t0p'\n");
}

TEST(DryRunShell, OnATerminal_HasNoSecrets) {
  const std::string text = dry_run_shell(sample(), 2, true);
  EXPECT_THAT(text, AllOf(Not(HasSubstr("s3cret")), Not(HasSubstr("t0p")),
                          HasSubstr("# WANDB_API_KEY is not shown on a terminal")));
}

TEST(DryRun, RankThatIsNotThere_IsAnError) {
  for (const auto& print : {dry_run_table, dry_run_json}) {
    EXPECT_THROW(print(sample(), 3), Error);
  }
  EXPECT_THROW(dry_run_shell(sample(), 3, false), Error);
}

}  // namespace
}  // namespace fleet
