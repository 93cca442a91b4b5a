#include <gtest/gtest.h>

#include "rendezvous/types.h"
#include "tests/control/rendezvous/nodes.h"
#include "transport/control_messages.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

// Through the bytes of the wire and back.
Assignment there_and_back(int node_rank, const std::string& world) {
  wire::HostMessage message;
  message.mutable_assignment()->set_node_rank(node_rank);
  EXPECT_TRUE(message.ParseFromString(message.SerializeAsString() + world));
  return decode(message.assignment());
}

wire::Node node_at(const std::string& address, const std::vector<int>& ports, int servers = 0) {
  wire::Node node;
  node.set_address(address);
  node.set_hostname("h" + address);
  for (const int port : ports) add_rank(&node, {port % 10}, port);
  node.set_servers(servers);
  return node;
}

World world_of(const std::vector<wire::Node>& nodes) {
  World world;
  world.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  number_ranks(&world);
  return world;
}

TEST(WorldEncoding, Assignment_BringsTheWorld) {
  World world = world_of({node_at("a", {6070, 6071}), node_at("b", {6070})});
  world.mutable_id()->set_generation(3);
  world.mutable_id()->set_leader("x");
  world.set_run("y");
  world.mutable_base()->set_generation(2);
  world.set_master_address("a");
  world.set_master_port(29500);
  const Assignment back = there_and_back(1, encode(world));
  EXPECT_EQ(back.node_rank, 1);
  EXPECT_EQ(back.world->SerializeAsString(), world.SerializeAsString());
  EXPECT_EQ(back.world_size(), 3);
  EXPECT_EQ(back.node().first_rank(), 2);
  EXPECT_EQ(back.node().hostname(), "hb");
}

TEST(WorldEncoding, WorldWithServers_ComesBack) {
  wire::Node second = node_at("b", {80, 81}, 1);
  for (const int rank : {1, 5}) second.add_ranks(rank);
  const Assignment back = there_and_back(1, encode(world_of({node_at("a", {80, 81}, 1), second})));
  EXPECT_EQ(back.world->servers(), 2);
  EXPECT_EQ(back.world_size(), 2);
  EXPECT_EQ(back.world->nodes(1).first_server(), 1);
  EXPECT_TRUE(is_server(back.node(), 0));
  EXPECT_EQ(rank_of(back.node(), 1), 5);
  EXPECT_EQ(rank_of(back.world->nodes(0), 1), 0);
}

TEST(WorldEncoding, LargeWorld_IsCompactAndComesBack) {
  std::vector<wire::Node> nodes;
  for (int i = 0; i < 2000; ++i) {
    const std::string address = "10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250);
    nodes.push_back(node_at(address, {6070, 6071, 6072, 6073, 6074, 6075, 6076, 6077}));
  }
  nodes[7].set_ports(3, 7000);
  nodes[9].mutable_devices(0)->add_ids(2);
  const World world = world_of(nodes);
  const std::string bytes = encode(world);
  EXPECT_LT(bytes.size(), 4u * nodes.size());
  const Assignment back = there_and_back(1999, bytes);
  EXPECT_EQ(back.world_size(), 16000);
  EXPECT_EQ(back.node().first_rank(), 15992);
  EXPECT_EQ(back.world->SerializeAsString(), world.SerializeAsString());
}

TEST(WorldEncoding, NamesOfAnyLength_ComeBack) {
  std::vector<wire::Node> nodes;
  for (const int size : {0, 1, 127, 128, 255, 256, 300, 20'000, 299}) {
    const std::string text(static_cast<size_t>(size), 'a');
    nodes.push_back(node_at(text + (size % 2 == 1 ? "b" : ""), {6070}));
  }
  const World world = world_of(nodes);
  const Assignment back = there_and_back(0, encode(world));
  EXPECT_EQ(back.world->SerializeAsString(), world.SerializeAsString());
}

TEST(Join, LongListOfNodes_TravelsAsADigest) {
  JobSpec job = job_of(65);
  for (int i = 0; i < 65; ++i) job.config.add_addresses("node" + std::to_string(i));
  const wire::Join join = join_for(job.config);
  EXPECT_TRUE(join.job().addresses().empty());
  EXPECT_EQ(join.job().addresses_digest(), digest_of(job.config.addresses()));
  job.config.mutable_addresses()->SwapElements(0, 1);
  EXPECT_NE(join.job().addresses_digest(), digest_of(job.config.addresses()));
}

TEST(FailureMessage, Error_ComesBack) {
  const Error error = from_wire(to_wire(Error(ErrorCode::kStale, "what", "where", "next")));
  EXPECT_EQ(error.code(), ErrorCode::kStale);
  EXPECT_EQ(std::string(error.what()), "where: what; next");
}

TEST(WorldEncoding, WorldThatTakesMuchMoreMemoryThanBytes_IsRefused) {
  const auto size_of = [](int nodes) {
    World world;
    for (int i = 0; i < nodes; ++i) world.add_nodes()->set_hostname(std::string(1 << 20, 'x'));
    return there_and_back(0, encode(world)).nnodes();
  };
  EXPECT_EQ(size_of(3), 3);
  EXPECT_THROW(size_of(20), Error);  // 20 MiB, of 20 KiB
}

TEST(WorldEncoding, WorldWhoseRanksContradict_IsRefused) {
  const auto unpack = [](int servers, int numbers, int devices) {
    wire::Node node = node_at("a", {80});
    node.set_servers(servers);
    for (int i = 0; i < numbers; ++i) node.add_ranks(i);
    for (int i = 1; i < devices; ++i) node.add_devices();
    return there_and_back(0, encode(world_of({node}))).world_size();
  };
  EXPECT_EQ(unpack(0, 1, 1), 1);
  EXPECT_THROW(unpack(-1, 0, 1), Error);
  EXPECT_THROW(unpack(2, 0, 1), Error);
  EXPECT_THROW(unpack(0, 2, 1), Error);
  EXPECT_THROW(unpack(0, 0, 2), Error);
}

TEST(WorldEncoding, Nonsense_IsAnErrorNotACrash) {
  wire::HostMessage message;
  wire::Assignment& assignment = *message.mutable_assignment();
  assignment.set_node_rank(4);
  EXPECT_THROW(decode(assignment), Error);
  assignment.set_nnodes(5);
  const auto size_of = [](const wire::Assignment& in) { return decode(in).world_size(); };
  EXPECT_THROW(size_of(assignment), Error);  // fewer than it says
  assignment.set_world("\xff\xff\xff");
  EXPECT_THROW(size_of(assignment), Error);
  wire::HostMessage good;
  EXPECT_TRUE(good.ParseFromString(encode(world_of({node_at("a", {80})}))));
  EXPECT_EQ(size_of(good.assignment()), 1);
  good.mutable_assignment()->set_generation(7);  // of another world
  EXPECT_THROW(size_of(good.assignment()), Error);
}

}  // namespace
}  // namespace fleet
