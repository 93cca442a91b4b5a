#include "launch/tools/dry_run/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

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

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The lines below each title of the table.
std::map<std::string, std::vector<std::string>> sections_of(const std::string& table) {
  std::map<std::string, std::vector<std::string>> sections;
  std::string title;
  bool begins = true;
  for (const std::string& line : lines_of(table)) {
    if (begins) {
      title = line;
      sections[title] = {};
    } else if (!line.empty()) {
      sections[title].push_back(line);
    }
    begins = line.empty();
  }
  return sections;
}

TEST(DryRunTable, ShowsPlacesVariablesAndWhatTheDoctorComplainsOf) {
  EXPECT_EQ(table(sample()),
            "job 'night': 3 processes on 2 nodes; dry run, nothing starts\n"
            "  rendezvous  10.0.0.1:6768\n"
            "  program     /bin/prog x\n"
            "  note        something is assumed\n"
            "  warning     /dev/shm: 64 MiB free; --shm-size=8g\n"
            "  checks      1 of 2 checks of this node passed; fleetrun doctor shows them\n"
            "\n"
            "          node  address   local rank  GPUs  cores  endpoint       log\n"
            "  rank 0  0     10.0.0.1  0           0,1   0,2    10.0.0.1:6070  log/workerlog.0\n"
            "  rank 1  1     10.0.0.2  0           -     -      10.0.0.2:6070  log/workerlog.0\n"
            "  rank 2  1     10.0.0.2  1           -     -      10.0.0.2:6071  log/workerlog.1\n"
            "\n"
            "every rank gets\n"
            "  WORLD_SIZE  3\n"
            "  A_TOKEN     ******\n"
            "  LIST        a,b\n"
            "\n"
            "rank 0 gets\n"
            "  RANK  0\n"
            "\n"
            "rank 1 gets\n"
            "  RANK  1\n"
            "\n"
            "rank 2 gets\n"
            "  RANK  2\n"
            "\n"
            "and every rank inherits\n"
            "  EDITOR         it's vi\n"
            "  WANDB_API_KEY  ******\n"
            "  BASH_FUNC_f%%  () {}\n"
            "but not http_proxy\n");
}

TEST(DryRunTable, SecretsAreMasked) {
  const std::string text = table(sample()) + json(sample());
  const auto job = nlohmann::json::parse(json(sample()));
  EXPECT_EQ(job["inherited"]["WANDB_API_KEY"], "******");
  EXPECT_EQ(job["ranks"][0]["environment"]["A_TOKEN"], "******");
  EXPECT_EQ(text.find("s3cret"), std::string::npos);
  EXPECT_EQ(text.find("t0p"), std::string::npos);
}

TEST(DryRunTable, LongValues_AreShortened) {
  const DryRunPlan job = sample(std::string(40000, 'x') + "end");
  const std::string text = table(job);
  EXPECT_THAT(lines_of(text),
              Contains("  LIST        " + std::string(100, 'x') + " ... " + std::string(47, 'x') +
                       "end (40003 characters; --format json shows them)"));
  EXPECT_LT(text.size(), 4000u);
  EXPECT_GT(json(job, 0).size(), 40000u);
}

TEST(DryRunTable, OneRank_IsShownAloneAndWhole) {
  auto sections = sections_of(table(sample(), 1));
  EXPECT_THAT(sections["rank 1 gets"], ElementsAre("  WORLD_SIZE  3", "  A_TOKEN     ******",
                                                   "  LIST        a,b", "  RANK        1"));
  EXPECT_FALSE(sections.contains("every rank gets"));
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
  auto sections = sections_of(table(job));
  EXPECT_THAT(sections["every rank gets"], ElementsAre("  SIZE  100"));
  EXPECT_THAT(sections["rank 7 gets"], ElementsAre("  RANK  7"));
  EXPECT_FALSE(sections.contains("rank 8 gets"));
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
  EXPECT_THAT(lines_of(text), Contains("# WANDB_API_KEY is not shown on a terminal"));
}

TEST(DryRun, RankThatIsNotThere_IsAnError) {
  EXPECT_THROW(table(sample(), 3), Error);
  EXPECT_THROW(json(sample(), 3), Error);
  EXPECT_THROW(shell(sample(), 3, false), Error);
}

}  // namespace
}  // namespace fleet
