// A host that admits its nodes, sends the world, and then falls silent.
#include <gtest/gtest.h>

#include "proto/control.grpc.pb.h"
#include "rendezvous/types.h"
#include "tests/control/rendezvous/grpc_nodes.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr auto kSilence = 200ms;

class SilentHost final : public wire::Rendezvous::Service {
 public:
  SilentHost() {
    grpc::ServerBuilder builder;
    set_up_server(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~SilentHost() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Session(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<wire::HostMessage, wire::NodeMessage>* stream) override {
    wire::NodeMessage message;
    stream->Read(&message);
    auto world = std::make_shared<World>();
    world->mutable_id()->set_generation(1);
    *world->add_nodes() = message.join().node();
    wire::HostMessage welcome;
    welcome.mutable_welcome()->set_heartbeat_interval_ms(20);
    welcome.mutable_welcome()->set_max_silence_ms(static_cast<int>(kSilence.count()));
    stream->Write(welcome);
    // The world follows its Assignment in the same message (encode() of types.h).
    wire::HostMessage whole;
    whole.mutable_assignment()->set_node_rank(0);
    whole.ParseFromString(whole.SerializeAsString() + encode(*world));
    stream->Write(whole);
    while (stream->Read(&message)) {
    }
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

Assignment joined(TestNode* node, bool hosts) {
  node->client->start(node_of(job_of(1), "10.0.0.1", 2, hosts));
  return node->wait_for<Assignment>().value();
}

TEST(SilentHost, AnotherNode_SaysThatItIsLost) {
  SilentHost host;
  TestNode node(host.address());
  joined(&node, false);
  EXPECT_EQ(node.wait_for<Verdict>().value().kind(), Verdict::NODE_LOST);
}

// Under a flood a host may be slow to answer itself.
TEST(SilentHost, NodeThatHostsItself_SaysNothing) {
  SilentHost host;
  TestNode node(host.address());
  joined(&node, true);
  const size_t heard = node.count();
  std::this_thread::sleep_for(5 * kSilence);  // that nothing happens
  EXPECT_EQ(node.count(), heard);
}

}  // namespace
}  // namespace fleet
