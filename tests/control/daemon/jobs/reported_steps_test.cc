// Steps that programs of any kind report: here of a shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tests/control/daemon/jobs/fleetd_test_base.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
struct ReportedStepsOfAJob : ::testing::Test {
  ~ReportedStepsOfAJob() override { EXPECT_THAT(job.survivors(30), IsEmpty()); }

  std::unique_ptr<Fleetrun> start(std::vector<std::string> arguments, const std::string& script) {
    arguments.insert(arguments.begin(), {"--nproc_per_node=2", "--job_id=told"});
    arguments.insert(arguments.end(), {"sh", "-c", script});
    return std::make_unique<Fleetrun>(job, "run", arguments);
  }
  std::pair<int, std::string> command(std::vector<std::string> words) {
    Fleetrun one(job, "command" + std::to_string(++commands), words);
    const int code = one.wait();
    return {code, one.output()};
  }
  // Of this host, without a fleetd.
  nlohmann::json asked(std::vector<std::string> words) {
    words.push_back("--fleetd_port=" + port);
    const auto [code, text] = command(std::move(words));
    return code == 0 ? nlohmann::json::parse(text, nullptr, false) : nlohmann::json();
  }
  std::vector<nlohmann::json> events(const std::string& kind) const {
    std::vector<nlohmann::json> all;
    for (const std::string& line : split(job.read("log/metrics.jsonl"), '\n')) {
      nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_object() && event["event"] == kind) all.push_back(std::move(event));
    }
    return all;
  }
  std::vector<int> steps(const std::string& kind) const {
    std::vector<int> all;
    for (const nlohmann::json& event : events(kind)) all.push_back(event["step"]);
    return all;
  }

  JobFolder job;
  const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
  int commands = 0;
};

TEST_F(ReportedStepsOfAJob, OutputAndFile_AreSeenWhileItRuns) {
  const auto fleetrun = start({}, R"(
    step=0
    while :; do
      step=$((step + 1))
      report="{\"step\": $step, \"steps\": 1000000, \"samples\": $((8 * step)), \"loss\": 0.5"
      if [ "$RANK" = 0 ]; then
        echo "{\"fleetrun\": $report, \"batch_time\": 0.05, \"wait_time\": 0.04}}"
      else
        echo "$report, \"batch_time\": 0.05, \"wait_time\": 0.001}" >>"$FLEET_STEPS_FILE"
      fi
      sleep 0.05
    done)");
  const auto complete = [](const nlohmann::json& frame) {
    return frame.is_object() && frame["ranks"].size() == 2 && frame["seconds_left"].is_number() &&
           std::ranges::all_of(frame["ranks"], [](const nlohmann::json& rank) {
             return rank["step_ms"].is_number() && rank["samples_per_second"].is_number();
           });
  };
  // The bound is against hanging.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  nlohmann::json frame;
  while (!complete(frame) && std::chrono::steady_clock::now() < end) {
    frame = asked({"top", "told", "--once", "--format=json"});
    ::poll(nullptr, 0, 100);
  }
  ASSERT_TRUE(complete(frame)) << frame.dump() << fleetrun->output();
  EXPECT_EQ(frame["target"], 1'000'000);
  EXPECT_GT(frame["step"], 0);
  EXPECT_EQ(frame["loss"], 0.5);
  EXPECT_GT(frame["ranks"][0]["step_ms"], 0);
  EXPECT_GT(frame["ranks"][1]["samples_per_second"], 0);
  EXPECT_GT(frame["ranks"][0]["peers_share"], frame["ranks"][1]["peers_share"]);
  EXPECT_TRUE(frame["ranks"][1]["slowest"]);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
}

TEST_F(ReportedStepsOfAJob, EndedJob_IsListedAndHasAReport) {
  const auto fleetrun = start({}, R"(
    for step in 1 2 3; do
      printf '%d%%|##  |\r{"fleetrun": {"step": %d, "steps": 4, "loss": 0.%d}}\n' $step $step $step
    done
    echo '{"fleetrun": {"step": -1}}'
    echo '{"fleetrun": {"step": 9, "loss": NaN}}'
    printf '{"step": 4, "perplexity": 7}' >>"$FLEET_STEPS_FILE")");
  ASSERT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  const std::string log = job.read("log/workerlog.0"), output = fleetrun->output();
  EXPECT_THAT(log,
              HasSubstr("3%|##  |\r{\"fleetrun\": {\"step\": 3, \"steps\": 4, \"loss\": 0.3}}\n"));
  EXPECT_THAT(output, HasSubstr("{\"fleetrun\": {\"step\": 9, \"loss\": NaN}}\n"));
  const size_t warning = output.find("any further wrong one");
  EXPECT_NE(warning, std::string::npos);
  EXPECT_EQ(output.find("any further wrong one", warning + 1), std::string::npos);

  EXPECT_THAT(steps("start"), ElementsAre(1));
  EXPECT_THAT(steps("train"), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(events("train")[3]["perplexity"], 7);
  EXPECT_EQ(events("summary").size(), 1u);
  const nlohmann::json progress = asked({"status", "told", "--format=json"})[0]["progress"];
  EXPECT_EQ(progress["step"], 4);
  EXPECT_EQ(progress["target"], 4);
  EXPECT_EQ(progress["loss"], 0.3);
  EXPECT_EQ(command({"report", "log"}).first, 0);
  EXPECT_THAT(job.read("log/report.html"), HasSubstr("perplexity"));
}

TEST_F(ReportedStepsOfAJob, RestartedJob_ContinuesItsHistory) {
  const auto fleetrun = start({"--max_restart=1"}, R"(
    [ "$RANK" = 0 ] || exit 0
    [ "$FLEET_GENERATION" = 1 ] && first=1 || first=3
    for step in $first $((first + 1)) $((first + 2)); do
      echo "{\"step\": $step}" >>"$FLEET_STEPS_FILE"
    done
    [ "$FLEET_GENERATION" = 2 ])");
  ASSERT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(steps("start"), ElementsAre(1, 3));
  EXPECT_THAT(steps("train"), ElementsAre(1, 2, 3, 3, 4, 5));
  EXPECT_FALSE(std::filesystem::exists(job.path() + "/log/metrics.jsonl.1"));
}

}  // namespace
}  // namespace fleet
