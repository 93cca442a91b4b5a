// Jobs with parameter servers, through the real fleetrun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "base/text.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

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
  std::vector<std::string> lines(const std::string& log) const {
    return split(job.read(log), '\n');
  }
  JobFolder job;
  std::string output;
};

TEST_F(ParameterServers, TrainersEnd_ServersAreSignalled) {
  EXPECT_EQ(run({"--server_num=2", "--worker_num=2"}, program(kTrainWhenServed)), 0);
  const std::vector<std::string> server = lines("log/serverlog.1");
  EXPECT_THAT(server,
              IsSupersetOf({"TRAINING_ROLE=PSERVER", "PADDLE_TRAINERS_NUM=2", "told to end"}));
  EXPECT_THAT(server, Not(Contains(StartsWith("PADDLE_TRAINER_ID"))));
  EXPECT_THAT(lines("log/workerlog.1"),
              IsSupersetOf({"TRAINING_ROLE=TRAINER", "PADDLE_TRAINER_ID=1", "trained 1"}));
  EXPECT_THAT(output, HasSubstr("Local server start 2 processes"));
  EXPECT_THAT(split(output, '\n'), AllOf(Contains("trained 0"), Not(Contains("trained 1"))));
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
  const auto rank = verdict_in(job)["rank"];
  EXPECT_EQ(rank["role"], "server");
  EXPECT_EQ(rank["rank"], 1);
  EXPECT_EQ(rank["log"], "log/serverlog.1");
}

TEST_F(ParameterServers, TrainerFails_ServersDoNotStay) {
  EXPECT_EQ(run({"--run_mode=ps", "--worker_num=2"},
                program("test $PADDLE_TRAINER_ID = 1 && exit 4; while :; do sleep 0.01; done")),
            4);
  EXPECT_EQ(verdict_in(job)["rank"]["role"], "trainer");
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
  EXPECT_THAT(lines("log1/workerlog.1"),
              IsSupersetOf({std::string("trained 2"), "PADDLE_PSERVERS_IP_PORT_LIST=" + servers,
                            "PADDLE_TRAINER_ENDPOINTS=" + workers,
                            "PADDLE_PORT=" + std::to_string(port + 2)}));
  EXPECT_THAT(lines("log2/workerlog.0"), Contains("trained 1"));
  EXPECT_THAT(lines("log2/serverlog.0"), Contains("POD_IP=127.0.0.2"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// Trainer 1 fails until it has been replaced twice; it leaves a process behind each time.
constexpr char kFailsTwice[] =
    "echo process ${FLEET_REPLACEMENT:-0}; "
    "test $PADDLE_TRAINER_ID = 1 && test ${FLEET_REPLACEMENT:-0} -lt 2 && { sleep 1000 & exit 4; "
    "}; "
    "while test $(ls replaced 2>/dev/null | wc -l) -lt 1; do "
    "test $PADDLE_TRAINER_ID = 1 && : >replaced; sleep 0.01; done; echo trained";

TEST_F(ParameterServers, TrainersThatAreReplaced_OthersGoOn) {
  EXPECT_EQ(
      run({"--server_num=1", "--worker_num=2", "--replace_trainers=always"}, program(kFailsTwice)),
      0);
  EXPECT_THAT(lines("log/workerlog.1"),
              IsSupersetOf({"process 0", "process 1", "process 2", "trained"}));
  EXPECT_THAT(lines("log/workerlog.0"), AllOf(Contains("process 0"), Not(Contains("process 1"))));
  EXPECT_THAT(output, AllOf(HasSubstr("restart 1 of 3"), HasSubstr("restart 2 of 3")));
  EXPECT_THAT(job.read("log/workerlog.1.1"), IsEmpty());  // appended
  const auto replaced = verdict_in(job)["replacements"];
  ASSERT_EQ(replaced.size(), 2u);
  EXPECT_EQ(replaced[1]["rank"], 1);
  EXPECT_EQ(replaced[1]["replacement"], 2);
  EXPECT_EQ(replaced[1]["code"], 4);
  EXPECT_TRUE(replaced[1]["repeated_samples"].is_null());  // it is not ours
}

TEST_F(ParameterServers, TrainersOfAnotherNode_AreReplacedThere) {
  const int port = 20000 + ReservedPort::any("127.0.0.1").port() % 10000;
  const auto start = [&](int node) {
    std::vector<std::string> arguments = {"--servers=127.0.0.1:" + std::to_string(port),
                                          "--workers=127.0.0.1:" + std::to_string(port + 1) +
                                              ",127.0.0.2:" + std::to_string(port + 2),
                                          "--host=127.0.0." + std::to_string(node),
                                          "--rdzv_port=" + std::to_string(port + 9),
                                          "--start_port=" + std::to_string(port + 10),
                                          "--log_dir=log" + std::to_string(node),
                                          "--replace_trainers=always"};
    const auto what = program(kFailsTwice);
    arguments.insert(arguments.end(), what.begin(), what.end());
    return std::make_unique<Fleetrun>(job, "node" + std::to_string(node), arguments);
  };
  const auto one = start(1), two = start(2);  // the only process of node 2
  EXPECT_EQ(one->wait(), 0) << one->output();
  EXPECT_EQ(two->wait(), 0) << two->output();
  EXPECT_THAT(lines("log2/workerlog.0"), IsSupersetOf({"process 2", "trained"}));
  EXPECT_THAT(one->output(), HasSubstr("restart 2 of 3"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(ParameterServers, MoreFailuresThanReplacements_EndTheJob) {
  EXPECT_EQ(
      run({"--server_num=1", "--worker_num=2", "--replace_trainers=always", "--max_restart=1"},
          program("test $PADDLE_TRAINER_ID = 1 && test -n \"$FLEET_REPLACEMENT\" && exit 5; "
                  "test $PADDLE_TRAINER_ID = 1 && exit 4; while :; do sleep 0.01; done")),
      5);
  EXPECT_EQ(verdict_in(job)["rank"]["rank"], 1);
}

TEST_F(ParameterServers, ReplacementsThatCannotBe_AreRefused) {
  EXPECT_EQ(run({"--nproc_per_node=1", "--replace_trainers=always"}, {"true"}), 2);
  EXPECT_EQ(run({"--server_num=1", "--replace_trainers=always"}, {"job.json"}), 2);
}

TEST_F(ParameterServers, DryRun_ShowsBothRoles) {
  EXPECT_EQ(run({"--dry_run", "--server_num=1", "--worker_num=2"}, {"true"}), 0);
  EXPECT_THAT(output, AllOf(HasSubstr("server 0"), HasSubstr("PADDLE_GLOO_HTTP_ENDPOINT")));
}

}  // namespace
}  // namespace fleet
