// strategy.auto as a user types it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cost/rates.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Auto : public ::testing::Test {
 protected:
  // Rates of no machine, so that nothing is measured.
  Auto() {
    MachineRates rates{.device = "a test", .origin = "made up"};
    rates.peak = {{"float32", 1e9}};
    rates.bytes_per_second = 2e8;
    rates.op_seconds = 1e-6;
    write_rates(rates, job_.path("rates.json"));
    ::setenv("FLEET_RATES_FILE", job_.path("rates.json").c_str(), 1);
  }
  ~Auto() override { ::unsetenv("FLEET_RATES_FILE"); }
  TrainingJob job_;
};

TEST_F(Auto, TwoRanks_ChooseAndTrainAsWithout) {
  const std::vector<std::string> overrides = {"data.batch_size=16", "train.max_steps=6"};
  const auto run = [&](const std::string& name, const std::string& value) {
    std::vector<std::string> all = overrides;
    all.insert(all.end(), {"train.output=" + job_.path(name), "strategy.auto=" + value});
    const auto process = job_.start(name, {"--nproc_per_node=2"}, all);
    EXPECT_EQ(process->wait(), 0) << process->output();
    return process->output();
  };
  const std::string output = run("with", "true");
  EXPECT_THAT(output, HasSubstr("auto: memory suffices: a rank needs"));
  EXPECT_THAT(run("without", "false"), Not(HasSubstr("auto:")));
  EXPECT_LT(distance(job_.weights("with"), job_.weights("without")), 1e-5);
}

TEST_F(Auto, Explain_ShowsTheChoice) {
  std::string error;
  ASSERT_EQ(job_.run_worker({"job.json", "--explain", "--measure=never", "--ranks=2", "--nodes=2",
                             "--link_rate=10M", "--set", "strategy.auto=true", "--format=json"},
                            &error),
            0)
      << error;
  const std::string output = job_.folder().read("worker.out");
  const std::string_view trimmed = trim(output);
  const auto json = nlohmann::json::parse(trimmed.substr(trimmed.rfind('\n') + 1));
  ASSERT_FALSE(json["choices"].empty());
  for (const auto& choice : json["choices"]) EXPECT_NE(choice.value("reason", ""), "");
}

TEST_F(Auto, DryRun_ShowsTheChoice) {
  const std::vector<std::string> overrides = {"strategy.auto=true"};
  const auto run = job_.start("dry", {"--dry_run", "--nproc_per_node=2"}, overrides);
  EXPECT_EQ(run->wait(), 0);
  EXPECT_THAT(run->output(),
              AllOf(HasSubstr("auto: memory suffices"), HasSubstr("time of a step: ")));
}

TEST_F(Auto, DryRunWithoutRates_ChoosesByMemory) {
  ::setenv("FLEET_RATES_FILE", job_.path("none.json").c_str(), 1);
  const std::vector<std::string> overrides = {"strategy.auto=true"};
  const auto run = job_.start("dry", {"--dry_run", "--nproc_per_node=2"}, overrides);
  EXPECT_EQ(run->wait(), 0);
  EXPECT_THAT(run->output(), HasSubstr("auto: memory suffices"));
}

}  // namespace
}  // namespace fleet
