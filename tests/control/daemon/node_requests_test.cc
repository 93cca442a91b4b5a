#include "daemon/node_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "launch/planning/arguments.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

ClientContext laptop() {
  ClientContext context;
  context.user = "ann";
  context.folder = "/data/run";
  context.nonce = "3fa2c1";
  context.secret = "a secret of this job";
  return context;
}

std::vector<NodeRequest> requests(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--via=fleetd");
  return node_requests(parse_arguments(arguments), laptop());
}

TEST(NodeRequests, EachNode_IsAskedForItsPart) {
  const auto all =
      requests({"--ips=a,b:2", "--grace=3", "--fleetd_port=7000", "train.py", "--lr", "1"});
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[1].address, "b:7000");
  const JobRequest& job = all[1].job;
  EXPECT_EQ(job.job_id(), "train-3fa2c1");
  EXPECT_EQ(job.node_rank(), 1);
  EXPECT_EQ(job.gpus().count(), 2);
  EXPECT_EQ(job.folder(), "/data/run");
  EXPECT_THAT(job.program(), ElementsAre("train.py", "--lr", "1"));
  EXPECT_THAT(job.nodes(), ElementsAre("a:7000", "b:7000"));
  EXPECT_THAT(
      job.arguments(),
      AllOf(Contains("--ips=a,b:2"), Contains("--host=b"), Contains(StartsWith("--grace=3")),
            Contains("--part"), Contains("--start_port=0"), Contains("--local_ranks_filter=0"),
            Contains("--log_dir=log/train-3fa2c1/node1"), Contains("--log_level=WARNING")));
  EXPECT_THAT(job.arguments(), Not(Contains(StartsWith("--via"))));
  EXPECT_THAT(all[0].job.arguments(), Contains("--log_level=INFO"));
  const wire::NamedValue& secret = *job.environment().rbegin();
  EXPECT_EQ(secret.name(), "FLEET_JOB_SECRET");
  EXPECT_EQ(secret.value(), "a secret of this job");
  EXPECT_THAT(job.arguments(), Not(Contains(HasSubstr("secret"))));  // arguments are public
}

// mpirun's --host means --ips, which only Paddle has.
TEST(NodeRequests, LineOfAnotherLauncher_StaysQuietOnTheNode) {
  const auto of_mpirun =
      node_requests(parse_arguments({"--host", "10.0.0.1,10.0.0.2", "-np", "2", "true"}), laptop());
  EXPECT_THAT(of_mpirun[0].job.arguments(), Contains("--table=none"));
  EXPECT_THAT(requests({"--ips=a,b", "true"})[0].job.arguments(),
              Not(Contains(StartsWith("--table"))));
}

TEST(NodeRequests, Arguments_AreUnderstoodOnTheNode) {
  for (const NodeRequest& node :
       requests({"--ips=10.0.0.[1-2]", "--ranks=0,3", "--gpus=0,1", "--chdir=/x", "--user=bob",
                 "--log_dir=/logs", "--job_id=nightly", "--share_gpus", "job.json"})) {
    std::vector<std::string> arguments = texts(node.job.arguments());
    arguments.push_back("--rdzv_port=0");
    arguments.push_back("--");
    arguments.insert(arguments.end(), node.job.program().begin(), node.job.program().end());
    const LaunchRequest there = parse_arguments(arguments);
    EXPECT_EQ(there.settings.text("job_id"), "nightly");
    EXPECT_EQ(there.settings.text("gpus"), "0,1");
    EXPECT_TRUE(there.settings.boolean("part"));
    EXPECT_EQ(there.program, texts(node.job.program()));
    EXPECT_EQ(node.job.user(), "bob");
    EXPECT_EQ(node.job.folder(), "/x");
    EXPECT_TRUE(node.job.gpus().share());
  }
}

TEST(NodeRequests, PortOfTheRendezvous_IsTheUsers) {
  EXPECT_THAT(requests({"--ips=a,b", "p"})[0].job.arguments(), Contains("--rdzv_port=0"));
  EXPECT_THAT(requests({"--ips=a,b", "--rdzv_port=7001", "p"})[0].job.arguments(),
              Contains("--rdzv_port=7001"));
}

TEST(NodeRequests, Tee_ShowsAllRanks) {
  EXPECT_THAT(requests({"--ips=a,b", "--tee=3", "p"})[1].job.arguments(),
              AllOf(Contains("--tee=3"), Not(Contains(StartsWith("--local_ranks_filter")))));
}

TEST(NodeRequests, EnvironmentOfTheClientsOwnPlace_DoesNotCount) {
  ::setenv("POD_IP", "10.0.0.9", 1);
  ::setenv("PADDLE_RANK", "3", 1);
  ::setenv("PADDLE_WITH_GLOO", "1", 1);
  const auto all = requests({"--ips=a,b", "p"});
  for (const char* name : {"POD_IP", "PADDLE_RANK", "PADDLE_WITH_GLOO"}) ::unsetenv(name);
  EXPECT_THAT(all[0].job.arguments(),
              AllOf(Contains("--host=a"), Not(Contains(StartsWith("--rank"))),
                    Not(Contains(StartsWith("--with_gloo")))));
}

TEST(NodeRequests, SecretFile_IsTheJobsSecret) {
  const std::string path = ::testing::TempDir() + "node_requests_test.secret";
  write_file_atomically(path, "0123456789abcdef\n");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const auto context = [](const std::string& file) {
    return client_context(
        parse_arguments({"--via=ssh", "--secret_file=" + file, "p"}).config.security);
  };
  EXPECT_EQ(context(path).secret, "0123456789abcdef");
  EXPECT_THROW(context("/no/such"), Error);
}

TEST(PlanOfRequests, IsWhatTheNodesAreAskedFor) {
  const LaunchRequest request = parse_arguments(
      {"--via=fleetd", "--ips=a:2,b:3", "--detach", "--share_gpus", "train.py", "x y"});
  const auto asked = node_requests(request, laptop());
  const ViaPlan plan = plan_of_requests(
      request, asked, [](const NodeRequest& node) { return "fleetd at " + node.address; });
  EXPECT_EQ(plan.job_id, "train-3fa2c1");
  ASSERT_THAT(plan.nodes, SizeIs(2));
  EXPECT_EQ(plan.nodes[1].through, "fleetd at b:6767");
  EXPECT_EQ(plan.nodes[1].folder, "/data/run");
  EXPECT_EQ(plan.nodes[1].logs, "log/train-3fa2c1/node1");
  EXPECT_EQ(plan.nodes[1].gpus, "3 of them, shared");
  EXPECT_THAT(plan.nodes[1].processes.ranks, ElementsAre(2, 3, 4));
  std::vector<std::string> command = {"fleetrun"};
  command.insert(command.end(), asked[1].job.arguments().begin(), asked[1].job.arguments().end());
  command.insert(command.end(), {"--", "train.py", "x y"});
  EXPECT_EQ(plan.nodes[1].command, command);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("fleetrun exits once all ranks run")));
  const LaunchRequest spare = parse_arguments(
      {"--via=fleetd", "--ips=a:2,b:2", "--nnodes=1", "--max_restart=1", "train.py"});
  const ViaPlan with_spare = plan_of_requests(spare, node_requests(spare, laptop()),
                                              [](const NodeRequest&) { return ""; });
  EXPECT_THAT(with_spare.nodes[0].processes.ranks, ElementsAre(0, 1));
  EXPECT_THAT(with_spare.nodes[1].processes.ranks, IsEmpty());
}

TEST(NodeRequests, SingleNode_IsShownAsItIs) {
  const auto all = requests({"--ips=a", "train.py"});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0].job.arguments(), AllOf(Not(Contains(StartsWith("--local_ranks_filter"))),
                                            Contains("--log_dir=log/train-3fa2c1")));
}

TEST(NodeRequests, OptionsThatMeanThisHost_AreRefused) {
  EXPECT_THROW(requests({"train.py"}), Error);
  EXPECT_THROW(requests({"--ips=a", "--host=a", "train.py"}), Error);
  EXPECT_THROW(requests({"--nnodes=2", "--master=a:1", "train.py"}), Error);
  EXPECT_THROW(requests({"--nnodes=2", "train.py"}), Error);
  EXPECT_THROW(requests({"--ips=a,b", "--nnodes=3", "train.py"}), Error);
  EXPECT_THROW(requests({"--ips=a,b", "--nnodes=1", "train.py"}), Error);  // without restarts
  EXPECT_THROW(requests({"--ips=a", "--export=CUDA_VISIBLE_DEVICES=0", "train.py"}), Error);
}

TEST(NodeRequests, RangeOfNodes_IsPassedOn) {
  const auto all = requests({"--ips=a,b,c", "--nnodes=2:3", "train.py"});
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_THAT(all[2].job.arguments(), Contains("--nnodes=2:3"));
  EXPECT_TRUE(all[2].job.restarts());
  EXPECT_FALSE(requests({"--ips=a", "train.py"})[0].job.restarts());
  EXPECT_EQ(all[2].job.log_dir(), "log/train-3fa2c1/node2");
}

TEST(TravellingEnvironment, TunedLibraries_WithoutSecretsAndDevices) {
  const auto all = forwarded_environment({{"NCCL_DEBUG", "INFO"},
                                          {"OMP_NUM_THREADS", "2"},
                                          {"CUDA_VISIBLE_DEVICES", "0"},
                                          {"PADDLE_IPS", "x"},
                                          {"TORCH_TOKEN", "x"},
                                          {"HOME", "/home"},
                                          {"WANDB_API_KEY", "k"},
                                          {"WANDB_MODE", "offline"}},
                                         {"WANDB_*", "MINE=1=2", "HOME"});
  EXPECT_THAT(all, ElementsAre(Pair("HOME", "/home"), Pair("MINE", "1=2"),
                               Pair("NCCL_DEBUG", "INFO"), Pair("OMP_NUM_THREADS", "2"),
                               Pair("WANDB_API_KEY", "k"), Pair("WANDB_MODE", "offline")));
  EXPECT_THAT(forwarded_environment({}, {"NONE_*"}), IsEmpty());
  EXPECT_THROW(forwarded_environment({}, {"NONE"}), Error);
}

}  // namespace
}  // namespace fleet
