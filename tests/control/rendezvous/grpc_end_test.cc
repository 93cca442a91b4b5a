// Ends of jobs, over real connections. Hosts that die are processes of their own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "rendezvous/store_client.h"
#include "tests/control/rendezvous/grpc_nodes.h"

namespace fleet {
namespace {

using ::testing::AllOf;

using namespace std::chrono_literals;
using testing::HasSubstr;

// This test's program again, as a process of its own that runs one (disabled) test. `address`: of a
// rendezvous, for it.
class OtherProcess {
 public:
  explicit OtherProcess(const std::string& test, const std::string& address = "") {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe");
    const std::string filter = "--gtest_filter=OtherProcess.DISABLED_" + test;
    const char* arguments[] = {"other", "--gtest_also_run_disabled_tests", filter.c_str(), nullptr};
    setenv("TEST_RENDEZVOUS", address.c_str(), 1);
    // Its one test may be another shard's.
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], kTellFd);
    posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, const_cast<char**>(arguments), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    UniqueFd from(ends[0]);
    char text[64] = {};
    if (read(from.get(), text, sizeof text - 1) <= 0) throw_errno("no word of the other process");
    word_ = text;
  }
  ~OtherProcess() {
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  const std::string& word() const { return word_; }  // its report
  void send(int signal) { kill(pid_, signal); }

  // In the other process: ready; wait to be killed.
  static void tell(const std::string& word) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ASSERT_EQ(write(kTellFd, word.data(), word.size()), static_cast<ssize_t>(word.size()));
    pause();
  }

 private:
  static constexpr int kTellFd = 100;
  pid_t pid_ = -1;
  std::string word_;
};

JobSpec two_nodes() { return job_of({"10.0.0.1", "10.0.0.2"}); }

// Hosts, and waits for the second node.
TEST(OtherProcess, DISABLED_Host) {
  RendezvousServer server(server_for(two_nodes()));
  TestNode host(server.local_address());
  host.client->start(node_of(two_nodes(), "10.0.0.1"));
  OtherProcess::tell(server.local_address());
}

// Is the second node.
TEST(OtherProcess, DISABLED_Node) {
  TestNode node(getenv("TEST_RENDEZVOUS"));
  node.client->join(node_of(two_nodes(), "10.0.0.2"));
  OtherProcess::tell("joined");
}

RankExit failure_of(int rank, int code) {
  RankExit exit;
  exit.set_rank(rank);
  exit.set_local_rank(rank % 2);
  exit.set_code(code);
  exit.set_ran_for_ms(2000);
  return exit;
}

TEST(GrpcEnd, AllFinish_EveryoneHearsSuccess) {
  RunningJob job(4);
  for (auto& node : job.nodes) node->finish();
  for (auto& node : job.nodes) {
    EXPECT_EQ(node->wait_for<Verdict>().value().kind(), Verdict::SUCCESS);
  }
  job.server->stop();
}

TEST(GrpcEnd, RankFails_EveryoneHearsTheSame) {
  RunningJob job(2);
  RankExit exit = failure_of(3, 7);
  exit.set_tail(std::string(100'000, 'x') + "Error: \xff\xfe boom\n");
  exit.set_log_path("log/workerlog.1");
  job.nodes[1]->report(exit);
  job.nodes[0]->wait_for<Verdict>();
  job.nodes[0]->report(failure_of(0, 1));
  for (auto& node : job.nodes) {
    const Verdict verdict = node->wait_for<Verdict>().value();
    EXPECT_EQ(verdict.kind(), Verdict::RANK_FAILED);
    EXPECT_EQ(verdict.exit().rank(), 3);
    EXPECT_EQ(verdict.exit().code(), 7);
    EXPECT_EQ(verdict.node(), "10.0.0.2");
    EXPECT_THAT(verdict.message(),
                AllOf(HasSubstr("exited with code 7"), HasSubstr("its log: log/worker")));
    EXPECT_EQ(verdict.exit().tail().size(), 65'536u);
    EXPECT_TRUE(verdict.exit().tail().ends_with("\xff\xfe boom\n"));
  }
}

TEST(GrpcEnd, RecordedError_ReachesEveryNodeCutToItsBounds) {
  RunningJob job(2);
  RankExit exit = failure_of(3, 1);
  exit.mutable_error()->set_message("KeyError: 'missing_key'");
  exit.mutable_error()->set_callstack(std::string(100'000, 'x') + "end");
  exit.mutable_error()->set_unix_time(1763800000);
  job.nodes[1]->report(exit);
  for (auto& node : job.nodes) {
    const Verdict verdict = node->wait_for<Verdict>().value();
    EXPECT_EQ(verdict.exit().error().message(), "KeyError: 'missing_key'");
    EXPECT_EQ(verdict.exit().error().callstack().size(), 16'384u);
    EXPECT_TRUE(verdict.exit().error().callstack().ends_with("end"));
    EXPECT_EQ(verdict.exit().error().unix_time(), 1763800000);
  }
}

TEST(GrpcEnd, StopRequest_CommandThenVerdict) {
  RunningJob job(2);
  job.nodes[1]->client->send(envelope(&wire::NodeMessage::mutable_stop, stop_request(SIGTERM)));
  for (auto& node : job.nodes) {
    EXPECT_EQ(node->wait_for<StopCommand>().value().signal(), SIGTERM);
    node->finish();
  }
  EXPECT_EQ(job.nodes[0]->wait_for<Verdict>().value().kind(), Verdict::STOPPED);
  EXPECT_EQ(exit_code_for(job.nodes[1]->wait_for<Verdict>().value()), 143);
}

TEST(GrpcEnd, NodeLeavesEarly_OthersHearItIsLost) {
  RunningJob job(3);
  job.nodes[2]->client->leave();
  const Verdict verdict = job.nodes[1]->wait_for<Verdict>().value();
  EXPECT_EQ(verdict.kind(), Verdict::NODE_LOST);
  EXPECT_EQ(verdict.node(), "10.0.0.3");
}

TEST(GrpcEnd, ServerStopped_EveryoneHearsNodeZeroIsLost) {
  RunningJob job(2);
  job.server->stop();
  EXPECT_EQ(job.nodes[1]->wait_for<Verdict>().value().kind(), Verdict::NODE_LOST);
  EXPECT_EQ(job.nodes[1]->wait_for<Verdict>().value().node_rank(), 0);
}

TEST(GrpcEnd, HostKilled_NodeZeroIsLostAndStoresSayIt) {
  OtherProcess host("Host");
  TestNode node(host.word());
  const Assignment assignment = node.client->join(node_of(two_nodes(), "10.0.0.2"));
  auto store = connect_store(assignment.store_address, "default", assignment.generation(), 2);
  store->set("k", "v");
  std::optional<Error> waiting;
  Thread waiter("waiter", [&] {
    try {
      store->get("never", kSoon);
    } catch (const Error& error) {
      waiting = error;
    }
  });
  host.send(SIGKILL);
  const Verdict verdict = node.wait_for<Verdict>().value();
  EXPECT_EQ(verdict.kind(), Verdict::NODE_LOST);
  EXPECT_EQ(verdict.node_rank(), 0);
  EXPECT_THAT(verdict.message(), HasSubstr("node 0 (10.0.0.1, host host-10.0.0.1)"));
  waiter.join();
  ASSERT_TRUE(waiting.has_value());
  EXPECT_EQ(waiting->code(), ErrorCode::kPeerLost);
  EXPECT_THAT(waiting->what(), HasSubstr("node 0's fleetrun"));
}

TEST(GrpcEnd, HostFallsSilent_NodeZeroIsLost) {
  OtherProcess host("Host");
  TestNode node(host.word());
  node.client->join(node_of(two_nodes(), "10.0.0.2"));
  host.send(SIGSTOP);
  const Verdict verdict = node.wait_for<Verdict>().value();
  EXPECT_EQ(verdict.kind(), Verdict::NODE_LOST);
  EXPECT_EQ(verdict.node_rank(), 0);
}

TEST(GrpcEnd, HostKilledWhileForming_NodeKeepsTryingUntilItsTimeout) {
  OtherProcess host("Host");
  const JobSpec other = two_nodes();
  wire::Join info = node_of(other, "10.0.0.2");
  info.mutable_job()->set_job_id("other");
  TestNode refused(host.word());
  refused.client->start(info);
  EXPECT_EQ(refused.wait_for<Refusal>().value().error.code(), ErrorCode::kUsage);
  host.send(SIGKILL);
  TestNode node(host.word(), 500ms);
  node.client->start(node_of(other, "10.0.0.2"));
  EXPECT_EQ(node.wait_for<Refusal>().value().error.code(), ErrorCode::kTimeout);
}

// A host of two nodes, the second a process of its own.
class NodeProcess : public testing::Test {
 protected:
  NodeProcess() : server_(server_for(two_nodes())), host_(server_.local_address()) {
    host_.client->start(node_of(two_nodes(), "10.0.0.1"));
    node_.emplace("Node", server_.local_address());
    host_.wait_for<Assignment>();
  }
  RendezvousServer server_;
  TestNode host_;
  std::optional<OtherProcess> node_;
};

TEST_F(NodeProcess, Killed_IsLostAtOnce) {
  node_->send(SIGKILL);
  const Verdict verdict = host_.wait_for<Verdict>().value();
  EXPECT_EQ(verdict.kind(), Verdict::NODE_LOST);
  EXPECT_THAT(verdict.message(),
              AllOf(HasSubstr("node 1 (10.0.0.2"), HasSubstr("its fleetrun vanished")));
}

TEST_F(NodeProcess, FallsSilent_IsLost) {
  node_->send(SIGSTOP);
  const Verdict verdict = host_.wait_for<Verdict>().value();
  EXPECT_EQ(verdict.kind(), Verdict::NODE_LOST);
  EXPECT_EQ(verdict.node_rank(), 1);
}

}  // namespace
}  // namespace fleet
