// fleet-worker --explain and fleetrun --dry_run of a job file, as a user types them.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cost/rates.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
class Explain : public ::testing::Test {
 protected:
  // Rates of no machine, so that nothing is measured.
  Explain() {
    MachineRates rates{.device = "a test", .origin = "made up"};
    rates.peak = {{"float32", 1e11}};
    rates.bytes_per_second = 2e10;
    rates.op_seconds = 1e-6;
    write_rates(rates, job_.path("rates.json"));
    ::setenv("FLEET_RATES_FILE", job_.path("rates.json").c_str(), 1);
  }
  ~Explain() override { ::unsetenv("FLEET_RATES_FILE"); }
  int explain(std::vector<std::string> more) {
    more.insert(more.begin(), {"job.json", "--explain", "--measure=never"});
    const int code = job_.run_worker(more, &error_);
    output_ = job_.folder().read("worker.out");
    return code;
  }
  nlohmann::json json() const {
    const std::string_view output = trim(output_);
    return nlohmann::json::parse(output.substr(output.rfind('\n') + 1), nullptr, false);
  }
  TrainingJob job_;
  std::string output_, error_;
};

TEST_F(Explain, Text_HasEachPart) {
  ASSERT_EQ(explain({"--ranks=2"}), 0) << error_;
  for (const char* part : {"parameters: ", "backward", "memory of a rank", "activations",
                           "all_reduce", "time of a step: ", "with one more option", "recompute"}) {
    EXPECT_THAT(output_, HasSubstr(part));
  }
  EXPECT_FALSE(std::filesystem::exists(job_.path("output")));
}

TEST_F(Explain, Json_FollowsRanksAndOverrides) {
  ASSERT_EQ(explain({"--format=json", "--ranks=4", "--nodes=2", "--set", "data.batch_size=8"}), 0)
      << error_;
  const nlohmann::json explained = json();
  EXPECT_EQ(explained.value("ranks", 0), 4);
  EXPECT_EQ(explained.value("nodes", 0), 2);
  EXPECT_EQ(explained.value("batch_size", 0), 8);
  EXPECT_EQ(explained["groups"].at(0).value("transport", ""), "hierarchical(shm, gloo)");
  EXPECT_GT(explained["memory"].value("process", 0), 1'000'000);
}

TEST_F(Explain, Servers_ShowWhatEachHolds) {
  ASSERT_EQ(explain({"--format=json", "--ranks=3", "--servers=2"}), 0) << error_;
  const nlohmann::json explained = json();
  EXPECT_EQ(explained.value("mode", ""), "sync");
  ASSERT_EQ(explained["servers"].size(), 2U);
  EXPECT_GT(explained["servers"][1]["blocks"].size(), 0U);
  EXPECT_GT(explained["servers"][1].value("bytes", 0), 0);
  EXPECT_EQ(explain({"--servers=2", "--link_rate=10G"}), 2);
  EXPECT_THAT(error_, HasSubstr("--link_rate"));
}

TEST_F(Explain, DryRunWithServers_ShowsWhatEachHolds) {
  const auto fleetrun =
      job_.start("explained", {"--dry_run", "--server_num=2", "--worker_num=2"}, {});
  ASSERT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("server 1 holds"));
}

TEST_F(Explain, Pipeline_ShowsWhatItsStagesComputeAndWait) {
  ASSERT_EQ(explain({"--format=json", "--ranks=2", "--rank=1", "--set", "strategy.pipeline=true",
                     "--set", "strategy.pipeline_configs.accumulate_steps=4"}),
            0)
      << error_;
  const nlohmann::json step = json()["step"];
  ASSERT_EQ(step["stages"].size(), 2U);
  EXPECT_EQ(step["stages"][1], step["compute"]);
  EXPECT_GT(step.value("waiting", 0.0), 0);
  EXPECT_NEAR(step.value("seconds", 0.0),
              step.value("compute", 0.0) + step.value("communication", 0.0) -
                  step.value("hidden", 0.0) + step.value("waiting", 0.0) + step.value("host", 0.0),
              1e-9);
}

TEST_F(Explain, WrongArguments_AreRefused) {
  EXPECT_EQ(explain({"--ranks=3", "--nodes=2"}), 2);
  EXPECT_THAT(error_, HasSubstr("3 ranks cannot be divided among 2 nodes"));
  EXPECT_EQ(explain({"--link_rate=fast"}), 2);
  EXPECT_THAT(error_, HasSubstr("'fast' is not a rate"));
  EXPECT_EQ(explain({"--for=h2000"}), 2);
  EXPECT_THAT(error_, HasSubstr("h200"));
  EXPECT_EQ(explain({"--rank=2", "--ranks=2"}), 2);
  EXPECT_THAT(error_, HasSubstr("has no rank 2"));
  EXPECT_EQ(job_.run_worker({"job.json", "--nodes=2"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("--explain"));
}

TEST_F(Explain, DryRunOfAJobFile_ShowsIt) {
  const auto run = job_.start("dry", {"--dry_run", "--nproc_per_node=2"}, {});
  EXPECT_EQ(run->wait(), 0);
  EXPECT_THAT(run->output(), HasSubstr("what the job takes"));
  EXPECT_THAT(run->output(), HasSubstr("memory of a rank"));
  EXPECT_THAT(run->output(), HasSubstr("all_reduce"));
  EXPECT_FALSE(std::filesystem::exists(job_.path("output")));
}

}  // namespace
}  // namespace fleet
