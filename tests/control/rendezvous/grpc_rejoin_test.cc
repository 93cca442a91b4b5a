// A node that its host has given up, because it was silent: it looks for the job and joins again.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "proto/control.grpc.pb.h"
#include "rendezvous/types.h"
#include "tests/control/rendezvous/grpc_nodes.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

constexpr char kRun[] = "the run";

// Takes a node into generation 1, gives it up, and takes it in again.
class ForgetfulHost final : public wire::Rendezvous::Service {
 public:
  ForgetfulHost() {
    grpc::ServerBuilder builder;
    set_up_server(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ForgetfulHost() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // The second Join.
  std::future<wire::Join> joined_again() { return joined_again_.get_future(); }

  grpc::Status Describe(grpc::ServerContext*, const wire::DescribeRequest*,
                        wire::DescribeReply* reply) override {
    reply->set_job_id(job_of(2).config.job_id());
    reply->set_run(kRun);
    reply->set_running(true);
    return grpc::Status::OK;
  }
  grpc::Status Session(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<wire::HostMessage, wire::NodeMessage>* stream) override {
    wire::NodeMessage message;
    stream->Read(&message);
    if (sessions_++ == 1) {
      joined_again_.set_value(message.join());
      while (stream->Read(&message)) {
      }
      return grpc::Status::OK;
    }
    World world;
    world.mutable_id()->set_generation(1);
    world.set_run(kRun);
    for (int node = 0; node < 2; ++node) *world.add_nodes() = message.join().node();
    world.mutable_nodes(0)->set_address("10.0.0.1");
    world.mutable_nodes(0)->clear_rdzv_port();
    wire::HostMessage welcome;
    welcome.mutable_welcome()->set_heartbeat_interval_ms(1'000);
    welcome.mutable_welcome()->set_max_silence_ms(60'000);
    stream->Write(welcome);
    // The world follows its Assignment in the same message (encode() of types.h).
    wire::HostMessage whole;
    whole.mutable_assignment()->set_node_rank(1);
    whole.ParseFromString(whole.SerializeAsString() + encode(world));
    stream->Write(whole);
    stream->Write(envelope(&wire::HostMessage::mutable_refused,
                           to_wire(Error(ErrorCode::kPeerLost, "it was silent"))));
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  std::atomic<int> sessions_ = 0;
  std::promise<wire::Join> joined_again_;
  std::unique_ptr<grpc::Server> server_;
};

// With a port to host the job itself, and without one.
class Rejoin : public testing::TestWithParam<int> {};

TEST_P(Rejoin, NodeThatWasGivenUp_StopsItsRanksAndJoinsAgain) {
  ForgetfulHost host;
  std::future<wire::Join> again = host.joined_again();
  TestNode node(RendezvousClientOptions{.address = host.address(), .restarts = true});
  wire::Join join = node_of(job_of(2), "10.0.0.2");
  join.mutable_node()->set_rdzv_port(GetParam());
  node.client->start(join);
  ASSERT_TRUE(node.wait_for<HostLost>());
  ASSERT_EQ(again.wait_for(kSoon), std::future_status::ready);
  const wire::Join second = again.get();
  EXPECT_EQ(second.last().generation(), 1);
  EXPECT_FALSE(second.hosts_rendezvous());
  if (GetParam() > 0) {  // it had begun to host the job
    EXPECT_TRUE(node.wait_for<TakeOver>());
    EXPECT_TRUE(node.wait_for<StepDown>());
  }
}

INSTANTIATE_TEST_SUITE_P(Ports, Rejoin, testing::Values(0, 6768));

}  // namespace
}  // namespace fleet
