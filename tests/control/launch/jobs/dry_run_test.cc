// fleetrun --dry_run: what it shows is what a start then does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct DryRunJob : ::testing::Test {
  int run(std::vector<std::string> arguments, const Fleetrun::Environment& environment = {}) {
    Fleetrun fleetrun(job, "run" + std::to_string(++runs), arguments, environment);
    const int code = fleetrun.wait();
    output = fleetrun.output();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  // The lines of `env`, without what a shell or this very run decides.
  std::vector<std::string> variables(const std::string& text) {
    std::vector<std::string> lines;
    for (const std::string& line : split(text, '\n')) {
      const std::string name = line.substr(0, line.find('='));
      const bool own = name == "_" || name == "PWD" || name == "OLDPWD" || name == "SHLVL";
      const bool of_run = name == "FLEET_STORE_ADDRESS" || name == "FLEET_CREDENTIALS" ||
                          name == "FLEET_PROGRESS_FILE" || name == "FLEET_COLLECTIVES_FILE" ||
                          name == "FLEET_RUN";
      if (!line.empty() && !own && !of_run) lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  JobFolder job;
  std::string output;
  int runs = 0;
};

TEST_F(DryRunJob, StartsNothingAndLeavesNothing) {
  EXPECT_EQ(run({"--dry_run", "--nproc_per_node=2", "sh", "-c", ": >started"}), 0);
  EXPECT_THAT(output, HasSubstr("2 processes on 1 node"));
  EXPECT_FALSE(std::filesystem::exists(job.path() + "/started"));
  EXPECT_FALSE(std::filesystem::exists(job.path() + "/log"));
}

TEST_F(DryRunJob, ShellForm_IsTheEnvironmentOfTheRank) {
  const std::string port = std::to_string(20000 + ReservedPort::any("127.0.0.1").port() % 10000);
  const std::vector<std::string> start = {"--nproc_per_node=2", "--start_port=" + port};
  const Fleetrun::Environment environment = {{"MY_TOKEN", "it's $ecret"}};
  std::vector<std::string> dry = {"--dry_run", "--format=shell", "--rank_env=1"};
  dry.insert(dry.end(), start.begin(), start.end());
  dry.push_back("env");
  ASSERT_EQ(run(dry, environment), 0);
  std::ofstream(job.path() + "/rank1.sh") << output;
  ASSERT_EQ(run({"--nproc_per_node=1", "--log_dir=shell", "env", "-i", "sh", "-c",
                 ". ./rank1.sh; exec env"}),
            0);
  std::vector<std::string> wet = start;
  wet.push_back("env");
  ASSERT_EQ(run(wet, environment), 0);
  const auto shell = variables(job.read("shell/workerlog.0"));
  EXPECT_THAT(shell, ::testing::Contains("MY_TOKEN=it's $ecret"));
  EXPECT_EQ(shell, variables(job.read("log/workerlog.1")));
}

TEST_F(DryRunJob, OtherNodes_AreForeseen) {
  EXPECT_EQ(run({"--dry_run", "--ips=127.0.0.1:1,127.0.0.[2-3]:2", "--host=127.0.0.2",
                 "--start_port=23450", "true"}),
            0);
  EXPECT_THAT(output, AllOf(HasSubstr("127.0.0.3:23451"), HasSubstr("127.0.0.1:6768")));
}

TEST_F(DryRunJob, WhatTheDoctorFinds_IsShown) {
  EXPECT_EQ(run({"--dry_run", "true"}, {{"NCCL_SOCKET_IFNAMES", "eth0"}}), 0);
  EXPECT_THAT(output, HasSubstr("warning     settings: NCCL_SOCKET_IFNAMES "));
  EXPECT_EQ(run({"--dry_run", "--format=json", "true"}, {{"NCCL_P2P_DISABLE", "yes"}}), 0);
  const auto job = nlohmann::json::parse(output);
  EXPECT_FALSE(job["findings"].empty());
  EXPECT_EQ(
      run({"--dry_run", "--format=shell", "--rank_env=0", "true"}, {{"NCCL_P2P_DISABLE", "yes"}}),
      0);
  EXPECT_EQ(output.find("is not a number"), std::string::npos) << output;
}

// Lists of the world are made once for all ranks, and ranks are not kept: else it would take the
// square of their number, and gigabytes.
TEST_F(DryRunJob, JobOf20000Ranks_IsForeseen) {
  const std::string script =
      "ulimit -v 4000000; exec \"$0\" --dry_run --format=json --nnodes=2500 --rank=0 "
      "--master=127.0.0.1:6768 --nproc_per_node=8 --start_port=0 --dialect=paddle,torch,horovod "
      "true | "
      "tail -n 3 | head -n 1 | cut -c1-120";
  Fleetrun fleetrun(job, "large", {"sh", "-c", script, program_folder() + "/fleetrun"});
  EXPECT_EQ(fleetrun.wait(), 0);
  EXPECT_THAT(job.read("log/workerlog.0"), HasSubstr("\"rank\":19999,\"node_rank\":2499"));
}

TEST_F(DryRunJob, WhatAStartWouldRefuse_IsRefused) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  EXPECT_EQ(run({"--dry_run", "--start_port=" + std::to_string(held.port()), "true"}), 2);
  EXPECT_THAT(output, StartsWith("fleetrun: --start_port"));
  EXPECT_EQ(run({"--dry_run", "no_such_program_at_all"}), 2);
  EXPECT_EQ(run({"--dry_run", "--rank_env=7", "true"}), 2);
  EXPECT_THAT(output, StartsWith("fleetrun: --rank_env"));
}

TEST_F(DryRunJob, ItsOptionsWithoutIt_AreRefused) {
  EXPECT_EQ(run({"--format=json", "true"}), 2);
  EXPECT_THAT(output, StartsWith("fleetrun: --format: "));
  EXPECT_EQ(run({"--rank_env=0", "true"}), 2);
  EXPECT_EQ(run({"--dry_run", "--format=yaml", "true"}), 2);
  EXPECT_EQ(run({"--dry_run", "--format=shell", "true"}), 2);
}

}  // namespace
}  // namespace fleet
