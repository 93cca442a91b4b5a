// --on_end: the command learns how the job ended, once, and changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Appends what it read to this file.
const std::string kKeep = "--on_end=cat >>told; echo kept";

struct OnEnd : ::testing::Test {
  nlohmann::json told() const { return nlohmann::json::parse(job.read("told"), nullptr, false); }
  JobFolder job;
};

TEST_F(OnEnd, Success_IsTold) {
  Fleetrun fleetrun(job, "run", {kKeep, "true"});
  EXPECT_EQ(fleetrun.wait(), 0);
  EXPECT_EQ(told(), verdict_in(job));
  EXPECT_EQ(told()["exit_code"], 0);
  EXPECT_EQ(job.read("log/on_end.log"), "kept\n");
  EXPECT_THAT(fleetrun.output(), ::testing::Not(HasSubstr("\nkept")));
}

TEST_F(OnEnd, Failure_IsToldAndKeepsItsCode) {
  Fleetrun fleetrun(job, "run", {"sh", "-c", "exit 7"}, {{"PADDLE_ON_END", "cat >told; exit 3"}});
  EXPECT_EQ(fleetrun.wait(), 7);
  EXPECT_EQ(told()["exit_code"], 7);
  EXPECT_THAT(fleetrun.output(), HasSubstr("--on_end exited with 3"));
}

TEST_F(OnEnd, Stop_IsTold) {
  Fleetrun fleetrun(job, "run", {kKeep, "sh", "-c", ": >ready; sleep 1000"});
  job.wait_for("ready");
  fleetrun.signal(SIGTERM);
  EXPECT_EQ(fleetrun.wait(), 128 + SIGTERM);
  EXPECT_EQ(told()["signal"], "SIGTERM");
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// Another node's command would write to the same file.
TEST_F(OnEnd, TwoNodes_RunItOnce) {
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");
  const auto line = [&](const std::string& node) {
    return std::vector<std::string>{"--ips=127.0.0.1,127.0.0.2",
                                    "--host=127.0.0." + node,
                                    "--nproc_per_node=1",
                                    "--log_dir=log" + node,
                                    "--rdzv_port=" + std::to_string(rendezvous.port()),
                                    kKeep,
                                    "sh",
                                    "-c",
                                    "test $RANK = 0 || exit 5; sleep 1000"};
  };
  Fleetrun first(job, "first", line("1")), second(job, "second", line("2"));
  EXPECT_EQ(first.wait(), 5) << first.output();
  EXPECT_EQ(second.wait(), 5) << second.output();
  EXPECT_EQ(told(), verdict_in(job, "log1"));
  EXPECT_EQ(job.read("log1/on_end.log"), "kept\n");
  EXPECT_EQ(job.read("log2/on_end.log"), "");
}

}  // namespace
}  // namespace fleet
