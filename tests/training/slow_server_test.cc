// A parameter server that is slow: the job's views name it as the bottleneck, through the real
// fleetrun and fleet-worker.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "node/reserved_ports.h"
#include "ps/message.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
constexpr int kPause = 200;  // ms, for each push: far more than a step takes

class SlowServer : public ::testing::Test {
 protected:
  SlowServer() {
    write_file_atomically(job_.path("armed"), "");
    const std::string push = std::to_string(static_cast<int>(ps::MessageType::kPush));
    fleetrun_ = std::make_unique<Fleetrun>(
        job_.folder(), "slow",
        std::vector<std::string>{"--server_num=2", "--worker_num=2", "--job_id=slow", "job.json",
                                 "--set", "train.epochs=100000", "--set", "train.output=out"},
        Fleetrun::Environment{{"FLEET_FAULT", "ps_has " + push + " 3 " + job_.path("armed") + " " +
                                                  std::to_string(kPause)}});
  }
  // The first cause that top shows, once it is a server: the job's start may have others.
  nlohmann::json shown_cause() {
    nlohmann::json last = nlohmann::json::object();
    const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
      Fleetrun top(job_.folder(), "top" + std::to_string(i),
                   {"top", "slow", "--once", "--format=json", "--fleetd_port=" + port});
      const nlohmann::json frame =
          top.wait() == 0 ? nlohmann::json::parse(top.output(), nullptr, false) : nlohmann::json();
      const nlohmann::json causes = frame.is_object() && frame["bottleneck"].is_object()
                                        ? frame["bottleneck"]["causes"]
                                        : nlohmann::json::array();
      if (!causes.empty()) last = causes[0];
      if (last.value("kind", "") == "server") break;
      ::poll(nullptr, 0, 300);
    }
    return last;
  }
  // The one whose log says that it is slowed down.
  int slow_server() const {
    return job_.folder().read("log/serverlog.1").find("FLEET_FAULT") == std::string::npos ? 0 : 1;
  }
  TrainingJob job_;
  std::unique_ptr<Fleetrun> fleetrun_;
};

TEST_F(SlowServer, TopVerdictAndReport_NameIt) {
  const nlohmann::json shown = shown_cause();
  ASSERT_EQ(shown.value("kind", ""), "server") << shown << fleetrun_->output();
  EXPECT_EQ(shown["server"], slow_server());
  fleetrun_->signal(SIGTERM);
  EXPECT_EQ(fleetrun_->wait(), 128 + SIGTERM) << fleetrun_->output();
  const nlohmann::json verdict = verdict_in(job_.folder());
  ASSERT_TRUE(verdict["bottleneck"].is_object()) << verdict;
  const nlohmann::json cause = verdict["bottleneck"]["causes"].at(0);
  EXPECT_EQ(cause["kind"], "server");
  EXPECT_EQ(cause["server"], slow_server());
  Fleetrun report(job_.folder(), "report", {"report", "out", "-o", "report.html"});
  EXPECT_EQ(report.wait(), 0) << report.output();
  const std::string number = std::to_string(slow_server()),
                    page = job_.folder().read("report.html");
  EXPECT_THAT(page, HasSubstr("bottleneck: server (server " + number + ")"));
  EXPECT_THAT(page, HasSubstr(number + " (busiest)"));
}

}  // namespace
}  // namespace fleet
