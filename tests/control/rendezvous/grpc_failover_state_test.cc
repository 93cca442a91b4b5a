// The state from which a node continues the job of its lost host.
#include <gtest/gtest.h>

#include "proto/control.grpc.pb.h"
#include "rendezvous/types.h"
#include "tests/control/rendezvous/grpc_nodes.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

// A host that takes a newcomer into generation 2, hears one report of it, and is lost.
class LostHost final : public wire::Rendezvous::Service {
 public:
  LostHost() {
    grpc::ServerBuilder builder;
    set_up_server(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~LostHost() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Session(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<wire::HostMessage, wire::NodeMessage>* stream) override {
    wire::NodeMessage message;
    stream->Read(&message);
    World world;
    world.mutable_id()->set_generation(2);
    world.mutable_base()->set_generation(1);
    for (int node = 0; node < 2; ++node) *world.add_nodes() = message.join().node();
    world.mutable_nodes(0)->set_address("10.0.0.1");
    wire::HostMessage welcome;
    welcome.mutable_welcome()->set_heartbeat_interval_ms(1'000);
    welcome.mutable_welcome()->set_max_silence_ms(60'000);
    stream->Write(welcome);
    wire::HostMessage whole;
    whole.mutable_assignment()->set_node_rank(1);
    GenerationResult& end = *whole.mutable_assignment()->add_history();
    end.set_generation(1);
    end.set_step(40);
    // The world follows its Assignment in the same message (encode() of types.h).
    whole.ParseFromString(whole.SerializeAsString() + encode(world));
    stream->Write(whole);
    read_until(stream, wire::NodeMessage::kAccept);
    wire::HostMessage start;
    start.mutable_start()->set_generation(2);
    stream->Write(start);
    read_until(stream, wire::NodeMessage::kSteps);
    return grpc::Status::OK;
  }

 private:
  template <typename Stream>
  static void read_until(Stream* stream, wire::NodeMessage::KindCase kind) {
    wire::NodeMessage message;
    while (stream->Read(&message) && message.kind_case() != kind) {
    }
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(FailoverState, Newcomer_ContinuesWithTheHistoryOfItsHost) {
  LostHost host;
  TestNode node(RendezvousClientOptions{.address = host.address(), .restarts = true});
  wire::Join join = node_of(job_of(2), "10.0.0.2");
  join.mutable_node()->set_rdzv_port(6768);
  node.client->start(join);
  ASSERT_TRUE(node.wait_for<Assignment>());
  StepReport steps;
  steps.add_ranks()->set_step(57);
  node.client->send(envelope(&wire::NodeMessage::mutable_steps, steps));
  const auto turn = node.wait_for<TakeOver>();
  ASSERT_TRUE(turn);
  ASSERT_EQ(turn->from.history.size(), 1u);
  EXPECT_EQ(turn->from.history[0].generation(), 1);
  EXPECT_EQ(turn->from.history[0].step(), 40);
  EXPECT_EQ(turn->from.step, 57);
}

}  // namespace
}  // namespace fleet
