#include "launch/planning/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/planning/addresses.h"
#include "launch/planning/arguments.h"
#include "launch/planning/options.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Hosting = Topology::Hosting;

// A host with two addresses, whose own name is mapped to 127.0.1.1 as Debian does.
HostFacts sample_host() {
  HostFacts host;
  host.addresses = {"127.0.0.1", "10.0.0.2"};
  host.resolve = [](const std::string& name) -> std::string {
    if (name == "own") return "127.0.1.1";
    if (name == "second") return "10.0.0.2";
    return name;
  };
  host.address_towards = [](const std::string&) { return std::string("10.0.0.2"); };
  return host;
}

Topology resolve_flags(std::vector<std::string> arguments) {
  arguments.push_back("program");
  return resolve_topology(parse_arguments(arguments).config, sample_host());
}

Error topology_error(const std::vector<std::string>& arguments) {
  return thrown_by([&] { resolve_flags(arguments); });
}

TEST(Topology, NothingGiven_IsOneNodeOnLoopbackWithFreePorts) {
  const Topology topology = resolve_flags({});
  EXPECT_EQ(topology.nnodes, 1);
  EXPECT_EQ(topology.address, "127.0.0.1");
  EXPECT_EQ(topology.hosting, Hosting::kYes);
  EXPECT_EQ(topology.rendezvous_port, 0);
  EXPECT_EQ(topology.start_port, 0);
}

TEST(Topology, SeveralIps_ThisHostIsFoundAndTheFirstHosts) {
  const Topology topology = resolve_flags({"--ips=10.0.0.1, 10.0.0.2"});
  EXPECT_THAT(topology.nodes, ElementsAre("10.0.0.1", "10.0.0.2"));
  EXPECT_EQ(topology.node_rank, 1);
  EXPECT_EQ(topology.hosting, Hosting::kNo);
  EXPECT_EQ(topology.rendezvous_address, "10.0.0.1");
  EXPECT_EQ(topology.rendezvous_port, kDefaultRendezvousPort);
  EXPECT_EQ(topology.start_port, kDefaultStartPort);
}

TEST(Topology, OneIpInTheList_HasFreePorts) {
  const Topology topology = resolve_flags({"--ips=10.0.0.2"});
  EXPECT_EQ(topology.address, "10.0.0.2");
  EXPECT_EQ(topology.rendezvous_port, 0);
  EXPECT_EQ(topology.start_port, 0);
}

TEST(Topology, TwoNodesOnOneMachine_HostTellsThemApart) {
  EXPECT_THAT(topology_error({"--ips=127.0.0.1,127.0.0.2"}), IsUsageError("--ips"));
  EXPECT_EQ(resolve_flags({"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0.2"}).node_rank, 1);
  EXPECT_EQ(resolve_flags({"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0.1"}).hosting,
            Hosting::kYes);
}

// 203.0.113.0/24 is reserved for examples: no host has it.
TEST(Topology, LocalAddrOfAGateway_IsWhereOthersReachThisNode) {
  const Topology topology =
      resolve_flags({"--nnodes=2", "--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:7",
                     "--local_addr=203.0.113.7"});
  EXPECT_EQ(topology.address, "203.0.113.7");
  EXPECT_TRUE(is_loopback(topology.bind_address)) << topology.bind_address;
  EXPECT_EQ(topology.rendezvous_address, "127.0.0.1");
}

TEST(Topology, IpsWithoutThisHost_ListsItsAddresses) {
  EXPECT_THAT(topology_error({"--ips=10.9.9.1,10.9.9.2"}).what(), HasSubstr("127.0.0.1, 10.0.0.2"));
}

TEST(Topology, Names_AreResolved) { EXPECT_EQ(resolve_flags({"--ips=first,second"}).node_rank, 1); }

TEST(Topology, OwnName_IsFoundWithoutLookingTheOthersUp) {
  HostFacts host = sample_host();
  host.name = "own";
  host.resolve = [](const std::string& name) -> std::string {
    EXPECT_THAT(name, ::testing::AnyOf("own", "10.0.0.2"));
    return name == "own" ? "10.0.0.2" : name;
  };
  const LaunchConfig config =
      parse_arguments({"--ips=silent[01-99],own,silent[100-199]", "p"}).config;
  EXPECT_EQ(resolve_topology(config, host).node_rank, 99);
}

TEST(Topology, OwnNameThatIsLoopback_ListensWhereTheOthersAre) {
  const Topology topology = resolve_flags({"--ips=own,10.0.0.1"});
  EXPECT_EQ(topology.address, "own");
  EXPECT_EQ(topology.bind_address, "10.0.0.2");
  EXPECT_EQ(resolve_flags({"--ips=own"}).address, "own");
}

TEST(Topology, OwnNameThatIsLoopbackWithoutARoute_IsAnError) {
  HostFacts host = sample_host();
  host.address_towards = [](const std::string&) { return std::string(); };
  try {
    resolve_topology(parse_arguments({"--ips=own,10.0.0.1", "program"}).config, host);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("127.0.1.1"), HasSubstr("/etc/hosts"), HasSubstr("10.0.0.2")));
  }
}

TEST(Topology, Ranges_AreNodes) {
  const Topology topology = resolve_flags({"--ips=10.0.0.[1-3],x"});
  EXPECT_THAT(topology.nodes, ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3", "x"));
  EXPECT_EQ(topology.node_rank, 1);
  EXPECT_EQ(topology.counts, "");
}

TEST(Topology, CountsOfGpus_AreOfThisNodeAndOfAll) {
  const Topology topology = resolve_flags({"--ips=10.0.0.1:8,10.0.0.2:4"});
  EXPECT_EQ(topology.listed_devices, 4);
  EXPECT_EQ(topology.counts, "10.0.0.1:8,10.0.0.2:4");
}

TEST(Topology, Ipv6WithCounts) {
  HostFacts host = sample_host();
  host.addresses.push_back("fd00::2");
  const Topology topology =
      resolve_topology(parse_arguments({"--ips=[fd00::1]:2,[fd00::2]:3", "program"}).config, host);
  EXPECT_THAT(topology.nodes, ElementsAre("fd00::1", "fd00::2"));
  EXPECT_EQ(topology.address, "fd00::2");
  EXPECT_EQ(topology.listed_devices, 3);
}

// A name service that knows the master after some tries, on a clock of its own.
struct LateName : ::testing::Test {
  void wait(int known_after) {
    HostFacts host = sample_host();
    host.resolve = [&](const std::string&) { return tries++ < known_after ? "" : "10.0.0.1"; };
    wait_for_master_name(
        parse_arguments({"--nnodes=2", "--master=train-0.train:6768", "program"}).config, host,
        [this] { return time; }, [this] { time += 1; },
        [this](const std::string& line) { lines.push_back(line); });
  }
  int tries = 0;
  double time = 100;
  std::vector<std::string> lines;
};

TEST_F(LateName, IsWaitedFor) {
  wait(5);
  EXPECT_EQ(tries, 6);
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("name train-0.train to resolve"),
                                       HasSubstr("298 s more"))));
}

TEST_F(LateName, ThatNeverComes_IsATimeout) {
  try {
    wait(1'000'000);
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(error.where(), "--master train-0.train");
  }
  EXPECT_GE(time, 400);
}

TEST(Topology, HostNotInIps_IsAnError) {
  EXPECT_THAT(topology_error({"--ips=10.0.0.1,10.0.0.2", "--host=10.0.0.3"}),
              IsUsageError("--host"));
}

TEST(Topology, DuplicateIps_AreAnError) {
  EXPECT_THAT(topology_error({"--ips=10.0.0.2,10.0.0.2"}), IsUsageError("--ips"));
}

TEST(Topology, EmptyIp_IsAnError) {
  EXPECT_THAT(topology_error({"--ips=10.0.0.2,,10.0.0.1"}), IsUsageError("--ips "));
}

TEST(Topology, NnodesAgainstIps_IsAnError) {
  EXPECT_THAT(topology_error({"--ips=10.0.0.2,10.0.0.1", "--nnodes=3"}),
              IsUsageError("--nnodes 3"));
}

TEST(Topology, RankAgainstIps_IsAnError) {
  EXPECT_THAT(topology_error({"--ips=10.0.0.2,10.0.0.1", "--rank=1"}), IsUsageError("--rank 1"));
}

TEST(Topology, CountedNodes_MeetAtTheMaster) {
  const Topology topology = resolve_flags({"--nnodes=2", "--master=10.0.0.1:7000"});
  EXPECT_EQ(topology.nnodes, 2);
  EXPECT_EQ(topology.node_rank, -1);
  EXPECT_EQ(topology.hosting, Hosting::kNo);
  EXPECT_EQ(topology.address, "10.0.0.2");
  EXPECT_EQ(topology.rendezvous_port, 7000);
}

TEST(Topology, MasterOnThisHost_FirstNodeHosts) {
  const Topology topology = resolve_flags({"--nnodes=2", "--master=10.0.0.2"});
  EXPECT_EQ(topology.hosting, Hosting::kIfFree);
  EXPECT_EQ(topology.rendezvous_port, kDefaultRendezvousPort);
  EXPECT_EQ(resolve_flags({"--nnodes=2", "--master=10.0.0.2", "--rank=0"}).hosting, Hosting::kYes);
  EXPECT_EQ(resolve_flags({"--nnodes=2", "--master=10.0.0.2", "--rank=1"}).hosting, Hosting::kNo);
}

TEST(Topology, SeveralNodesWithoutAMaster_IsAnError) {
  EXPECT_THAT(topology_error({"--nnodes=2"}), IsUsageError("--nnodes"));
}

TEST(Topology, NodeZeroAwayFromTheMaster_IsAnError) {
  EXPECT_THAT(topology_error({"--nnodes=2", "--master=10.0.0.1", "--rank=0"}),
              IsUsageError("--master"));
}

TEST(Topology, RankBeyondNnodes_IsAnError) {
  EXPECT_THAT(topology_error({"--nnodes=2", "--master=10.0.0.1", "--rank=2"}).what(),
              HasSubstr("no node 2"));
}

TEST(Topology, BadMaster_IsAnError) {
  EXPECT_THAT(topology_error({"--nnodes=2", "--master=etcd://x"}), IsUsageError());
  EXPECT_THAT(topology_error({"--nnodes=2", "--master=10.0.0.1:x"}),
              IsUsageError("--master 10.0.0.1:x"));
  EXPECT_THAT(topology_error({"--nnodes=2", "--master=10.0.0.1:1", "--rdzv_port=2"}),
              IsUsageError("--rdzv_port 2"));
}

TEST(Topology, MasterInIpv6_IsUnderstood) {
  const Topology topology = resolve_flags({"--nnodes=2", "--master=[fd00::1]:7000"});
  EXPECT_EQ(topology.rendezvous_address, "fd00::1");
  EXPECT_EQ(topology.rendezvous_port, 7000);
  EXPECT_EQ(resolve_flags({"--nnodes=2", "--master=fd00::1"}).rendezvous_address, "fd00::1");
}

TEST(Topology, OtherRunModes_AreRefused) {
  EXPECT_THAT(topology_error({"--run_mode=rpc"}), IsUsageError("--run_mode"));
}

TEST(Topology, NodesOfServersAndWorkers) {
  const Topology topology =
      resolve_flags({"--servers=10.0.0.1:80", "--workers=10.0.0.2:81,10.0.0.1:82"});
  EXPECT_THAT(topology.nodes, ElementsAre("10.0.0.1", "10.0.0.2"));
  EXPECT_EQ(topology.node_rank, 1);
}

TEST(Topology, Ports_FollowTheOptions) {
  const Topology topology = resolve_flags({"--start_port=9000", "--rdzv_port=9100"});
  EXPECT_EQ(topology.start_port, 9000);
  EXPECT_EQ(topology.rendezvous_port, 9100);
}

TEST(Topology, PortZero_IsAnyFreeOne) {
  const Topology topology =
      resolve_flags({"--ips=10.0.0.1,10.0.0.2", "--start_port=0", "--rdzv_port=0"});
  EXPECT_EQ(topology.start_port, 0);
  EXPECT_EQ(topology.rendezvous_port, 0);
}

TEST(Addresses, Endpoint_BracketsIpv6) {
  EXPECT_EQ(endpoint("10.0.0.1", 80), "10.0.0.1:80");
  EXPECT_EQ(endpoint("::1", 80), "[::1]:80");
}

TEST(Addresses, Loopback_IsAllOf127) {
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("127.8.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_FALSE(is_loopback("127.example.org"));
}

TEST(Addresses, LocalAddresses_HaveLoopback) {
  EXPECT_THAT(local_addresses(), ::testing::Contains("127.0.0.1"));
}

TEST(Topology, SortIp_RanksFollowTheAddresses) {
  const auto listed = [](std::vector<std::string> words) {
    words.emplace_back("p");
    return list_text(parse_arguments(words).config.nodes.listed.value);
  };
  EXPECT_EQ(listed({"--sort_ip", "True", "--ips=10.0.0.10,10.0.0.9"}), "10.0.0.9,10.0.0.10");
  EXPECT_EQ(listed({"--ips=10.0.0.10,10.0.0.9"}), "10.0.0.10,10.0.0.9");
}

}  // namespace
}  // namespace fleet
