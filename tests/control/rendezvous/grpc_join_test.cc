// Joining over real connections: threads and clients of this process stand for nodes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <filesystem>

#include "base/file.h"
#include "tests/control/rendezvous/grpc_nodes.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

// Joins and returns why that was refused.
Error refusal_of(const std::string& address, const wire::Join& info,
                 std::chrono::milliseconds timeout = kSoon) {
  TestNode node(address, timeout);
  return error_of([&] { node.client->join(info); });
}

TEST(GrpcJoin, OneNode_IsAssigned) {
  const JobSpec job = job_of({"127.0.0.1"});
  RendezvousServer server(server_for(job));
  EXPECT_FALSE(server.open_to_network());
  TestNode node(server.local_address());
  wire::Join info = node_of(job, "127.0.0.1", 3);
  info.mutable_node()->mutable_devices(1)->clear_ids();
  for (const int id : {4, 5}) info.mutable_node()->mutable_devices(1)->add_ids(id);
  const Assignment assignment = node.client->join(info);
  EXPECT_EQ(assignment.world_size(), 3);
  EXPECT_EQ(assignment.generation(), 1);
  EXPECT_EQ(assignment.store_address, server.local_address());
  EXPECT_EQ(devices_of(assignment.node(), 1), (std::vector<int>{4, 5}));
  EXPECT_EQ(assignment.node().ports(2), info.node().ports(2));
  EXPECT_EQ(assignment.node().hostname(), "host-127.0.0.1");
  EXPECT_EQ(assignment.world->master_port(), 29500);
}

TEST(GrpcJoin, FourNodes_AgreeOnTheWorld) {
  RunningJob job(4);
  for (int i = 0; i < 4; ++i) {
    const Assignment assignment = job.nodes[i]->wait_for<Assignment>().value();
    EXPECT_EQ(assignment.node_rank, i);
    EXPECT_EQ(assignment.node().first_rank(), 2 * i);
    EXPECT_EQ(assignment.world_size(), 8);
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(assignment.world->nodes(j).address(), job.job.config.addresses(j));
    }
  }
}

// The host of a job with restarts is lost; this node had no world yet.
TEST(GrpcJoin, HostIsGoneAndTheJobHasAnother_ClientFindsIt) {
  JobSpec job = job_of({"10.0.0.1", "10.0.0.2"});
  job.min_nodes = 1;
  job.restarts.max_restarts = 1;
  job.restarts.elastic_timeout = 1ms;
  RendezvousServer server(server_for(job));
  TestNode host(server.local_address());
  host.client->start(node_of(job, "10.0.0.1"));
  ASSERT_TRUE(host.wait_for<Assignment>());
  TestNode node(RendezvousClientOptions{.address = "127.0.0.1:1",  // nobody listens there
                                        .timeout = 2 * kSoon,
                                        .first_progress = 20ms,
                                        .progress_every = 20ms,
                                        .other_addresses = {server.network_address()}});
  node.client->start(node_of(job, "10.0.0.2"));
  EXPECT_TRUE(host.wait_for<RestartCommand>());  // with the newcomer
}

TEST(GrpcJoin, ServerComesLater_ClientKeepsTrying) {
  const JobSpec job = job_of({"127.0.0.1"});
  // A port that was free a moment ago, to start the client before the server.
  auto options = server_for(job);
  options.port = RendezvousServer(options).port();
  TestNode node("127.0.0.1:" + std::to_string(options.port), kSoon, 50ms);
  node.client->start(node_of(job, "127.0.0.1"));
  EXPECT_THAT(node.wait_for<JoinProgress>().value().line(),
              HasSubstr("waiting for node 0's fleetrun at 127.0.0.1:"));
  RendezvousServer server(options);
  EXPECT_TRUE(node.wait_for<Assignment>().has_value());
}

TEST(GrpcJoin, NobodyListens_TimesOutSayingWhy) {
  auto options = server_for(job_of({"127.0.0.1"}));
  const int port = RendezvousServer(options).port();
  const Error error =
      refusal_of("127.0.0.1:" + std::to_string(port), node_of(options.job, "127.0.0.1"), 1s);
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("127.0.0.1:" + std::to_string(port)),
                                  HasSubstr("Connection refused")));
}

TEST(ReasonOf, WrapperUponWrapper_LeavesTheWordsForPeople) {
  const auto reason = [](const std::string& text) {
    return reason_of(grpc::Status(grpc::StatusCode::UNAVAILABLE, text));
  };
  EXPECT_EQ(reason("failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:6768: "
                   "Failed to connect to remote host: Connection refused"),
            "Connection refused");
  EXPECT_EQ(reason("DNS resolution failed for node01:6767: C-ares status is not ARES_SUCCESS "
                   "qtype=AAAA name=node01 is_balancer=0: Domain name not found"),
            "Domain name not found");
}

TEST(GrpcJoin, NodeMissing_NamedToEveryoneThere) {
  auto options = server_for(job_of({"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
  options.timeout = 1s;  // who comes later hears that the job has ended
  RendezvousServer server(options);
  TestNode host(server.local_address()), other(server.local_address());
  host.client->start(node_of(options.job, "10.0.0.1"));
  other.client->start(node_of(options.job, "10.0.0.3"));
  for (TestNode* node : {&host, &other}) {
    const Error error = node->wait_for<Refusal>().value().error;
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  }
}

TEST(GrpcJoin, Mismatches_AreRefusedWithTheDifference) {
  const JobSpec job = job_of({"10.0.0.1", "10.0.0.2"});
  auto options = server_for(job);
  options.first_progress = 10ms;
  RendezvousServer server(options);
  const std::string address = server.local_address();
  TestNode host(address);
  host.client->start(node_of(job, "10.0.0.1"));
  EXPECT_TRUE(host.wait_for<JoinProgress>().has_value());  // it is in, and waits

  wire::Join info = node_of(job, "10.0.0.2");
  info.mutable_job()->set_job_id("theirs");
  EXPECT_EQ(refusal_of(address, info).code(), ErrorCode::kUsage);
  info = node_of(job, "10.0.0.2");
  info.mutable_job()->set_version("9.9.9");
  EXPECT_EQ(refusal_of(address, info).code(), ErrorCode::kUsage);
  info = node_of(job, "10.0.0.2");
  info.mutable_job()->set_nnodes(7);
  EXPECT_EQ(refusal_of(address, info).code(), ErrorCode::kUsage);
  info = node_of(job, "10.0.0.2");
  info.mutable_job()->mutable_agreed_config(0)->set_value(
      "p\xffs");  // whatever bytes a command line has
  EXPECT_THAT(refusal_of(address, info).what(), HasSubstr("--run_mode is 'p\\xffs' there"));
  EXPECT_EQ(refusal_of(address, node_of(job, "10.0.0.1")).code(), ErrorCode::kUsage);
  EXPECT_EQ(refusal_of(address, node_of(job, "10.0.0.9")).code(), ErrorCode::kUsage);
  TestNode right(address);
  EXPECT_EQ(right.client->join(node_of(job, "10.0.0.2")).node_rank, 1);
}

TEST(GrpcJoin, LateJoiner_IsRefusedAndTheJobGoesOn) {
  RunningJob job(2);
  const Error error = refusal_of(job.server->local_address(), node_of(job.job, "10.0.0.2"));
  EXPECT_EQ(error.code(), ErrorCode::kStale);
  for (auto& node : job.nodes) node->finish();
  EXPECT_TRUE(succeeded(job.nodes[1]->wait_for<Verdict>().value()));
}

TEST(GrpcJoin, LeaveWhileWaiting_ThrowsAndFreesThePlace) {
  const JobSpec job = job_of({"10.0.0.1", "10.0.0.2"});
  auto options = server_for(job);
  options.first_progress = 10ms;
  RendezvousServer server(options);
  TestNode host(server.local_address());
  Thread joiner("joiner", [&] {
    EXPECT_EQ(error_of([&] { host.client->join(node_of(job, "10.0.0.1")); }).code(),
              ErrorCode::kPeerLost);
  });
  EXPECT_TRUE(host.wait_for<JoinProgress>().has_value());  // it is in, and waits
  host.client->leave();
  joiner.join();
  const size_t heard = host.count();
  TestNode again(server.local_address()), other(server.local_address());
  again.client->start(node_of(job, "10.0.0.1"));
  other.client->start(node_of(job, "10.0.0.2"));
  EXPECT_TRUE(again.wait_for<Assignment>().has_value());
  EXPECT_EQ(host.count(), heard) << "no event comes after leave()";
}

TEST(GrpcServer, PortTakenByAProgram_SaysSo) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd.get(), 1), 0);
  ASSERT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  auto options = server_for(job_of(1));
  options.port = ntohs(address.sin_port);
  try {
    RendezvousServer server(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(options.port) + " is taken"));
  }
}

TEST(GrpcServer, PortTakenByARendezvous_NamesItsJob) {
  auto options = server_for(job_of(1));
  options.job.config.set_job_id("first");
  RendezvousServer first(options);
  options.port = first.port();
  const auto message = [&] {
    try {
      RendezvousServer server(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("was not refused");
  };
  EXPECT_THAT(message(), HasSubstr("pid " + std::to_string(getpid())));
  options.job.config.set_job_id("second");
  EXPECT_THAT(message(), HasSubstr("job 'first'"));
}

TEST(GrpcServer, ForeignAddress_SaysSo) {
  auto options = server_for(job_of(1));
  options.host = "192.0.2.1";  // kept for documentation: nobody's
  try {
    RendezvousServer server(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr("192.0.2.1"));
  }
}

TEST(GrpcServer, ListensEverywhere_IsOpenAndReachedOnLoopback) {
  auto options = server_for(job_of({"127.0.0.1"}));
  options.host = "0.0.0.0";
  RendezvousServer server(options);
  EXPECT_TRUE(server.open_to_network());
  TestNode node(server.local_address());
  EXPECT_EQ(node.client->join(node_of(options.job, "127.0.0.1")).nnodes(), 1);
}

TEST(GrpcServer, Descriptors_AreCloseOnExec) {
  RunningJob job(1);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the listing's own descriptor
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!target.starts_with("socket:") && !target.starts_with("anon_inode:")) continue;
    const int fd = std::stoi(entry.path().filename().string());
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd << " " << target;
  }
}

TEST(GrpcServer, ProxyInTheEnvironment_IsNotUsed) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  RunningJob job(1);
  unsetenv("http_proxy");
  EXPECT_EQ(job.nodes[0]->wait_for<Assignment>().value().nnodes(), 1);
}

}  // namespace
}  // namespace fleet
