// Jobs with parameter servers, through the real fleetrun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A server waits for SIGTERM; a trainer does `trainer`.
std::vector<std::string> program(const std::string& trainer, const std::string& server = "true") {
  return {"sh", "-c",
          "env | grep -E 'PADDLE|ROLE|POD_IP' | sort; if test $TRAINING_ROLE = PSERVER; then "
          "trap 'echo told to end; exit 0' TERM; " +
              server + "; : >serving.$POD_IP.$PADDLE_PORT; while :; do sleep 0.01; done; fi; " +
              trainer};
}

constexpr char kTrainWhenServed[] =
    "while test $(ls serving.* 2>/dev/null | wc -l) -lt 2; do sleep 0.01; done; "
    "echo trained $PADDLE_TRAINER_ID";

struct ParameterServers : ::testing::Test {
  int run(std::vector<std::string> options, const std::vector<std::string>& what) {
    options.insert(options.end(), what.begin(), what.end());
    Fleetrun fleetrun(job, "run", options);
    const int code = fleetrun.wait();
    output = fleetrun.output();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  JobFolder job;
  std::string output;
};

TEST_F(ParameterServers, TrainersEnd_ServersAreSignalled) {
  EXPECT_EQ(run({"--server_num=2", "--worker_num=2"}, program(kTrainWhenServed)), 0);
  EXPECT_THAT(job.read("log/serverlog.1"),
              AllOf(HasSubstr("TRAINING_ROLE=PSERVER\n"), HasSubstr("PADDLE_TRAINERS_NUM=2\n"),
                    Not(HasSubstr("PADDLE_TRAINER_ID")), HasSubstr("told to end")));
  EXPECT_THAT(job.read("log/workerlog.1"),
              AllOf(HasSubstr("TRAINING_ROLE=TRAINER\n"), HasSubstr("PADDLE_TRAINER_ID=1\n"),
                    HasSubstr("trained 1")));
  EXPECT_THAT(output, AllOf(HasSubstr("Local server start 2 processes"),
                            HasSubstr("Local worker start 2 processes"), HasSubstr("trained 0"),
                            Not(HasSubstr("trained 1"))));
  EXPECT_THAT(job.read("log/endpoints.log"),
              ::testing::MatchesRegex("PADDLE_PSERVERS_IP_PORT_LIST: \n127.0.0.1:[0-9]+\n"
                                      "127.0.0.1:[0-9]+\nPADDLE_TRAINER_ENDPOINTS: \n"
                                      "127.0.0.1:[0-9]+\n127.0.0.1:[0-9]+\n"));
}

TEST_F(ParameterServers, ServerFails_TheJobFails) {
  EXPECT_EQ(run({"--server_num=2", "--worker_num=1"},
                program("while :; do sleep 0.01; done",
                        "test ${PADDLE_PSERVERS_IP_PORT_LIST##*:} = $PADDLE_PORT && "
                        "{ echo table is lost; exit 6; }")),
            6);
  EXPECT_THAT(output, AllOf(HasSubstr("Out of all 2 servers, the server process with rank=[1]"),
                            HasSubstr("log/serverlog.1:"), HasSubstr("table is lost")));
}

TEST_F(ParameterServers, TrainerFails_ServersDoNotStay) {
  EXPECT_EQ(run({"--run_mode=ps", "--worker_num=2"},
                program("test $PADDLE_TRAINER_ID = 1 && exit 4; while :; do sleep 0.01; done")),
            4);
  EXPECT_THAT(output, HasSubstr("Out of all 2 trainers"));
}

TEST_F(ParameterServers, ListsOfTwoNodes_GiveTheRanks) {
  const int port = 20000 + ReservedPort::any("127.0.0.1").port() % 10000;
  const auto at = [&](int node, int offset) {
    return "127.0.0." + std::to_string(node) + ":" + std::to_string(port + offset);
  };
  const std::string servers = at(2, 0) + "," + at(1, 0);
  const std::string workers = at(1, 1) + "," + at(2, 1) + "," + at(1, 2);
  const auto start = [&](int node) {
    std::vector<std::string> arguments = {"--servers=" + servers,
                                          "--workers=" + workers,
                                          "--host=127.0.0." + std::to_string(node),
                                          "--rdzv_port=" + std::to_string(port + 9),
                                          "--start_port=" + std::to_string(port + 10),
                                          "--log_dir=log" + std::to_string(node)};
    const auto what = program(kTrainWhenServed);
    arguments.insert(arguments.end(), what.begin(), what.end());
    return std::make_unique<Fleetrun>(job, "node" + std::to_string(node), arguments);
  };
  const auto one = start(1), two = start(2);
  EXPECT_EQ(one->wait(), 0) << one->output();
  EXPECT_EQ(two->wait(), 0) << two->output();
  EXPECT_THAT(job.read("log1/workerlog.1"),
              AllOf(HasSubstr("trained 2"), HasSubstr("PADDLE_PSERVERS_IP_PORT_LIST=" + servers),
                    HasSubstr("PADDLE_TRAINER_ENDPOINTS=" + workers + "\n"),
                    HasSubstr("PADDLE_PORT=" + std::to_string(port + 2) + "\n")));
  EXPECT_THAT(job.read("log2/workerlog.0"), HasSubstr("trained 1"));
  EXPECT_THAT(job.read("log2/serverlog.0"), HasSubstr("POD_IP=127.0.0.2\n"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(ParameterServers, JobFile_IsRefused) {
  EXPECT_EQ(run({"--server_num=1"}, {source_folder() + "/config/fashion_mnist.json"}), 2);
  EXPECT_THAT(output, HasSubstr("a job file does not support parameter servers"));
}

TEST_F(ParameterServers, DryRun_ShowsBothRoles) {
  EXPECT_EQ(run({"--dry_run", "--server_num=1", "--worker_num=2"}, {"true"}), 0);
  EXPECT_THAT(output, AllOf(HasSubstr("3 processes on 1 node"), HasSubstr("server 0"),
                            HasSubstr("rank 1 gets"), HasSubstr("PADDLE_GLOO_HTTP_ENDPOINT")));
}

}  // namespace
}  // namespace fleet
