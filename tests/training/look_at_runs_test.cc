// fleetrun report and compare over folders of real runs.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What a command of fleetrun prints in the job's folder.
std::string printed(const TrainingJob& job, const std::string& name,
                    const std::vector<std::string>& arguments, int code = 0) {
  Fleetrun command(job.folder(), name, arguments);
  EXPECT_EQ(command.wait(), code) << command.output();
  return command.output();
}

TEST(Report, CompleteRun_HasEveryPart) {
  TrainingJob job;
  auto run = job.start("run", {"--nproc_per_node=2"},
                       {"train.output=run", "train.max_steps=40", "train.fetch_every=5"});
  ASSERT_EQ(run->wait(), 0) << run->output();
  EXPECT_EQ(printed(job, "report", {"report", "run"}), "run/report.html\n");
  const std::string page = job.folder().read("run/report.html");
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_THAT(page, AllOf(HasSubstr("completed"), HasSubstr("Learning rate"), HasSubstr("rank 1"),
                          HasSubstr("model.name"), HasSubstr("waiting for data")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<h2>Warnings"))));
  EXPECT_THAT(printed(job, "svg", {"report", "run", "--svg=-"}), HasSubstr("</svg>"));
}

TEST(Report, KilledRank_HasTheVerdictOfItsJob) {
  TrainingJob job;
  auto run = job.start("cut", {"--nproc_per_node=2"},
                       {"train.output=cut", "train.epochs=1000", "train.fetch_every=1",
                        "checkpoint.every_steps=10", "train.evaluate_every=0"});
  job.folder().wait_for("cut/checkpoints/step_00000010/state.json");
  kill(job.folder().processes("fleet-worker").at(1), SIGKILL);
  EXPECT_EQ(run->wait(), 128 + SIGKILL) << run->output();
  printed(job, "report", {"report", "cut"});
  const std::string page = job.folder().read("cut/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("rank failed, exit code 137"), HasSubstr("<h2>Verdict"),
                          HasSubstr("<h2>Curves")));
}

TEST(Report, OtherFolder_IsOneLine) {
  TrainingJob job;
  const std::string line = printed(job, "report", {"report", "."}, 2);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
}

TEST(CompareRuns, TwoSeedsAndAnotherRate_AreTwoGroups) {
  TrainingJob job;
  const auto train = [&](const std::string& name, const std::string& rate, int seed) {
    auto run = job.start(name, {"--nproc_per_node=1"},
                         {"train.output=runs/" + name, "train.max_steps=10",
                          "learning_rate.base=" + rate, "train.seed=" + std::to_string(seed)});
    ASSERT_EQ(run->wait(), 0) << run->output();
  };
  train("a", "0.01", 1);
  train("b", "0.01", 2);
  train("c", "0.02", 1);
  const auto all =
      nlohmann::json::parse(printed(job, "json", {"compare", "runs", "--format=json"}));
  EXPECT_EQ(all["differing"], nlohmann::json({"learning_rate.base"}));
  ASSERT_EQ(all["groups"].size(), 2u);
  EXPECT_EQ(all["groups"][0]["runs"].size(), 2u);
  EXPECT_EQ(all["groups"][0]["runs"][1]["seed"], 2);
  EXPECT_EQ(all["groups"][1]["settings"]["learning_rate.base"], 0.02);
  EXPECT_EQ(all["groups"][1]["steps"]["mean"], 10);
  EXPECT_THAT(printed(job, "text", {"compare", "runs"}), HasSubstr("seeds 1, 2"));
}

}  // namespace
}  // namespace fleet
