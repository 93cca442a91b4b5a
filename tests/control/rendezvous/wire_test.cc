#include "rendezvous/wire.h"

#include <gtest/gtest.h>

#include "tests/control/rendezvous/nodes.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

// Through the bytes of the wire and back.
Assignment there_and_back(int node_rank, const std::string& world) {
  wire::HostMessage message;
  message.mutable_assignment()->set_node_rank(node_rank);
  EXPECT_TRUE(message.ParseFromString(message.SerializeAsString() + world));
  return from_wire(message.assignment());
}

Verdict received(const Verdict& verdict) {
  return within_limits(envelope(&wire::HostMessage::mutable_verdict, verdict)).verdict();
}

TEST(Wire, NodeInfo_ComesBack) {
  NodeInfo info = node_of(job_of({"a", "b"}), "b", 3);
  info.job.job_id = "j\xff";
  info.job.protocol = 5;
  info.node_rank = 1;
  info.devices[1] = {};
  info.devices[2] = {4, 5};
  info.servers = 1;
  info.ranks = {7, 0, 3};
  info.job.fingerprint = {{"NCCL_DEBUG", "INFO"}, {"program", "a\xff"}};
  info.job.allow_skew = true;
  info.last = {3, "x"};
  info.committed = {2, "y"};
  const NodeInfo back = from_wire(to_wire(info));
  EXPECT_EQ(back.job.fingerprint, info.job.fingerprint);
  EXPECT_TRUE(back.job.allow_skew);
  EXPECT_EQ(back.job.job_id, info.job.job_id);
  EXPECT_EQ(back.job.nnodes, 2);
  EXPECT_EQ(back.job.addresses, info.job.addresses);
  EXPECT_EQ(back.job.version, info.job.version);
  EXPECT_EQ(back.job.protocol, 5);
  EXPECT_EQ(back.job.agreed_config, info.job.agreed_config);
  EXPECT_EQ(back.address, "b");
  EXPECT_EQ(back.node_rank, 1);
  EXPECT_FALSE(back.hosts_rendezvous);
  EXPECT_EQ(back.devices, info.devices);
  EXPECT_EQ(back.ports, info.ports);
  EXPECT_EQ(back.servers, 1);
  EXPECT_EQ(back.ranks, info.ranks);
  EXPECT_EQ(back.hostname, info.hostname);
  EXPECT_EQ(back.instance, info.instance);
  EXPECT_EQ(back.last, info.last);
  EXPECT_EQ(back.committed, info.committed);
}

TEST(Wire, Assignment_BringsTheWorld) {
  auto world = std::make_shared<World>();
  world->generation = 3;
  world->leader = "x";
  world->run = "y";
  world->base = {2, "z"};
  world->master_address = "a";
  world->master_port = 29500;
  world->nodes = {{"a", "ha", 0, 0, {{0}, {1}}, {6070, 6071}}, {"b", "hb", 1, 2, {{}}, {6070}}};
  world->world_size = 3;
  const Assignment back = there_and_back(1, encode(*world));
  EXPECT_EQ(back.node_rank, 1);
  EXPECT_EQ(back.world->id(), world->id());
  EXPECT_EQ(back.world->run, "y");
  EXPECT_EQ(back.world->base, world->base);
  EXPECT_EQ(back.world_size(), 3);
  EXPECT_EQ(back.first_rank(), 2);
  EXPECT_EQ(back.node().hostname, "hb");
  EXPECT_EQ(back.world->nodes[0].devices, world->nodes[0].devices);
  EXPECT_EQ(back.world->nodes[0].ports, world->nodes[0].ports);
  EXPECT_EQ(back.world->master_address, "a");
  EXPECT_EQ(back.world->master_port, 29500);
}

TEST(Wire, WorldWithServers_ComesBack) {
  World world;
  world.nodes = {{"a", "", 0, 0, {{}, {}}, {80, 81}, 1, 0, {}},
                 {"b", "", 1, 1, {{}, {}}, {80, 81}, 1, 1, {1, 5}}};
  const Assignment back = there_and_back(1, encode(world));
  EXPECT_EQ(back.world->servers, 2);
  EXPECT_EQ(back.world_size(), 2);
  EXPECT_EQ(back.world->nodes[1].first_server, 1);
  EXPECT_TRUE(back.node().is_server(0));
  EXPECT_EQ(back.node().rank_of(1), 5);
  EXPECT_EQ(back.world->nodes[0].rank_of(1), 0);
}

World large_world(int nnodes) {
  World world;
  for (int i = 0; i < nnodes; ++i) {
    const std::string address = "10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250);
    NodePlacement node{address, "gpu" + std::to_string(i), i, 8 * i, {}, {}};
    for (int rank = 0; rank < 8; ++rank) {
      node.devices.push_back({rank});
      node.ports.push_back(6070 + rank);
    }
    world.nodes.push_back(node);
  }
  world.world_size = 8 * nnodes;
  return world;
}

TEST(Wire, LargeWorld_IsCompactAndComesBack) {
  World world = large_world(2000);
  world.nodes[7].ports[3] = 7000;
  world.nodes[9].devices[0] = {1, 2};
  const std::string bytes = encode(world);
  EXPECT_LT(bytes.size(), 20u * world.nodes.size());
  const Assignment back = there_and_back(1999, bytes);
  ASSERT_EQ(back.nnodes(), 2000);
  EXPECT_EQ(back.world_size(), 16000);
  EXPECT_EQ(back.first_rank(), 15992);
  for (size_t i : {0, 6, 7, 8, 9, 10, 1999}) {
    EXPECT_EQ(back.world->nodes[i].address, world.nodes[i].address);
    EXPECT_EQ(back.world->nodes[i].hostname, world.nodes[i].hostname);
    EXPECT_EQ(back.world->nodes[i].ports, world.nodes[i].ports) << i;
    EXPECT_EQ(back.world->nodes[i].devices, world.nodes[i].devices) << i;
  }
}

TEST(Wire, LongListOfNodes_TravelsAsADigest) {
  std::vector<std::string> addresses;
  for (int i = 0; i < 65; ++i) addresses.push_back("node" + std::to_string(i));
  const NodeInfo back = from_wire(to_wire(node_of(job_of(addresses), "node3")));
  EXPECT_TRUE(back.job.addresses.empty());
  EXPECT_EQ(back.job.addresses_digest, digest_of(addresses));
  std::swap(addresses[0], addresses[1]);
  EXPECT_NE(back.job.addresses_digest, digest_of(addresses));
}

TEST(Wire, Verdict_ComesBackWithinLimits) {
  Verdict verdict;
  verdict.set_kind(Verdict::RANK_FAILED);
  verdict.set_node_rank(0);
  RankExit& exit = *verdict.mutable_exit();
  exit.set_at_ns(-5);
  exit.set_at_error_ns(0);
  exit.set_tail("tail\xff\n");
  exit.mutable_error()->set_message("KeyError");
  EXPECT_EQ(received(verdict).SerializeAsString(), verdict.SerializeAsString());
  exit.set_tail(std::string(1 << 20, 'x') + "end");
  const std::string tail = received(verdict).exit().tail();
  EXPECT_EQ(tail.size(), 64u << 10);
  EXPECT_TRUE(tail.ends_with("xend"));
  verdict.clear_exit();
  EXPECT_FALSE(received(verdict).has_exit());
}

TEST(Wire, LongTextsOfAnExit_AreCut) {
  RankExit exit;
  exit.set_cause(std::string(5 << 10, 'c'));
  exit.set_at_error_ns(-1);
  EXPECT_EQ(within_limits(exit).cause().size(), 4u << 10);
  EXPECT_FALSE(within_limits(exit).has_at_error_ns());
  EXPECT_FALSE(within_limits(exit).has_error());
  exit.mutable_error()->set_message(std::string(5 << 10, 'm'));
  exit.mutable_error()->set_callstack(std::string(1 << 20, 's') + "innermost");
  EXPECT_EQ(within_limits(exit).error().message().size(), 4u << 10);
  EXPECT_EQ(within_limits(exit).error().callstack().size(), 16u << 10);
  EXPECT_TRUE(within_limits(exit).error().callstack().ends_with("sinnermost"));
}

// `fleetrun stacks` of a large job: as many as a message holds, were each whole, are 10,000 ranks.
TEST(Wire, EqualStacks_TravelOnce) {
  StackReport report;
  for (int rank = 0; rank < 1000; ++rank) {
    RankStack& stack = *report.mutable_stacks()->add_ranks();
    stack.set_rank(rank);
    stack.set_node_rank(rank / 8);
    stack.set_state('S');
    stack.set_channel("x");
    for (int i = 0; i < 24; ++i) stack.add_frames(rank == 500 ? "odd" : std::string(60, 'f'));
    if (rank == 7) stack.set_missing("denied");
  }
  StackReport sent = report;
  share_frames(sent.mutable_stacks());
  EXPECT_LT(sent.SerializeAsString().size(), 40'000u);
  EXPECT_EQ(with_own_frames(sent.stacks()).SerializeAsString(),
            report.stacks().SerializeAsString());
}

TEST(Wire, StacksBeyondTheLimits_AreCut) {
  Stacks stacks;
  stacks.add_ranks()->set_like(7);  // of none that came before
  RankStack& stack = *stacks.add_ranks();
  for (int i = 0; i < 100; ++i) stack.add_frames(std::string(1000, 'f'));
  stack.set_missing(std::string(2 << 10, 'm'));
  stacks.add_ranks()->set_like(2);
  const Stacks own = with_own_frames(stacks);
  EXPECT_TRUE(own.ranks(0).frames().empty());
  for (const int like : {1, 2}) {
    ASSERT_EQ(own.ranks(like).frames_size(), 64);
    EXPECT_EQ(own.ranks(like).frames(63).size(), 256u);
    EXPECT_EQ(own.ranks(like).missing().size(), 1u << 10);
    EXPECT_EQ(own.ranks(like).like(), 0u);
  }
}

TEST(Wire, Error_ComesBack) {
  const Error error = from_wire(to_wire(Error(ErrorCode::kStale, "what", "where", "next")));
  EXPECT_EQ(error.code(), ErrorCode::kStale);
  EXPECT_EQ(std::string(error.what()), "where: what; next");
}

TEST(Wire, CauseOfARestart_IsWithinLimits) {
  wire::HostMessage message;
  message.mutable_restart()->set_generation(3);
  Verdict& cause = *message.mutable_restart()->mutable_cause();
  cause.set_message("why");
  EXPECT_EQ(within_limits(message).SerializeAsString(), message.SerializeAsString());
  cause.mutable_exit()->set_tail(std::string(1 << 20, 'x'));
  EXPECT_EQ(within_limits(message).restart().cause().exit().tail().size(), 64u << 10);
}

TEST(Wire, WorldThatTakesMuchMoreMemoryThanBytes_IsRefused) {
  const auto world_of = [](const wire::Nodes& nodes) {
    wire::HostMessage message;
    auto* world = message.mutable_assignment()->mutable_world();
    world->set_nnodes(nodes.nodes_size());
    world->set_nodes(nodes.SerializeAsString());
    return from_wire(message.assignment()).world->world_size;
  };
  wire::Nodes nodes;
  auto* shape = nodes.add_shapes();
  for (int i = 0; i < 5000; ++i) shape->add_ports(1);
  nodes.add_nodes();
  EXPECT_EQ(world_of(nodes), 5000);
  for (int i = 0; i < 5000; ++i) nodes.add_nodes();  // 25 million ports
  EXPECT_THROW(world_of(nodes), Error);
}

TEST(Wire, WorldWhoseRanksContradict_IsRefused) {
  const auto unpack = [](int servers, int numbers) {
    wire::Nodes nodes;
    nodes.add_shapes()->add_ports(1);
    nodes.mutable_shapes(0)->set_servers(servers);
    nodes.add_nodes();
    for (int i = 0; i < numbers; ++i) nodes.mutable_nodes(0)->add_ranks(i);
    wire::HostMessage message;
    message.mutable_assignment()->mutable_world()->set_nnodes(1);
    message.mutable_assignment()->mutable_world()->set_nodes(nodes.SerializeAsString());
    return from_wire(message.assignment()).world->world_size;
  };
  EXPECT_EQ(unpack(0, 1), 1);
  EXPECT_THROW(unpack(-1, 0), Error);
  EXPECT_THROW(unpack(2, 0), Error);
  EXPECT_THROW(unpack(0, 2), Error);
}

TEST(Wire, Nonsense_IsAnErrorNotACrash) {
  EXPECT_THROW(within_limits(wire::HostMessage()), Error);
  wire::HostMessage message;
  message.mutable_assignment()->set_node_rank(4);
  EXPECT_THROW(from_wire(message.assignment()), Error);
  auto* world = message.mutable_assignment()->mutable_world();
  world->set_nnodes(5);
  world->set_nodes("\xff\xff\xff");
  const auto looked_at = [&] { return from_wire(message.assignment()).world->world_size; };
  EXPECT_THROW(looked_at(), Error);
  world->set_compressed(true);
  EXPECT_THROW(looked_at(), Error);
  world->clear_nodes();
  EXPECT_THROW(looked_at(), Error);  // fewer than it says
}

}  // namespace
}  // namespace fleet
