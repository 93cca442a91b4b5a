#include "rendezvous/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/control/rendezvous/nodes.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::optional<Error> add(Membership& membership, SessionId session, const wire::Join& info) {
  std::optional<SessionId> replaced;
  return membership.add(session, info, &replaced);
}

std::vector<std::string> order(const Membership& membership) {
  std::vector<std::string> addresses;
  const auto world = membership.assign_ranks(1);
  for (const auto& node : world->nodes()) addresses.push_back(node.address());
  return addresses;
}

// Expects a refusal whose message holds all these.
void expect_refused(const std::optional<Error>& error, ErrorCode code,
                    std::vector<std::string> parts) {
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), code);
  for (const std::string& part : parts) EXPECT_THAT(error->what(), HasSubstr(part));
}

TEST(Membership, ListedNodesInAnyOrder_GetTheRanksOfTheList) {
  const JobSpec job = job_of({"10.0.0.2", "10.0.0.1", "10.0.0.3"});
  Membership membership(job);
  EXPECT_FALSE(add(membership, 1, node_of(job, "10.0.0.3", 1)));
  EXPECT_FALSE(add(membership, 2, node_of(job, "10.0.0.1", 4)));
  EXPECT_FALSE(membership.complete());
  EXPECT_FALSE(add(membership, 3, node_of(job, "10.0.0.2", 2)));
  ASSERT_TRUE(membership.complete());
  const auto world = membership.assign_ranks(7);
  EXPECT_EQ(world->id().generation(), 7);
  EXPECT_EQ(world->world_size(), 7);
  EXPECT_THAT(order(membership), ElementsAre("10.0.0.2", "10.0.0.1", "10.0.0.3"));
  EXPECT_EQ(world->nodes(1).first_rank(), 2);
  EXPECT_EQ(world->nodes(2).first_rank(), 6);
  EXPECT_EQ(world->nodes(2).node_rank(), 2);
  EXPECT_EQ(world->master_address(), "10.0.0.2");
  EXPECT_EQ(world->master_port(), 29500);
}

TEST(Membership, CountedNodes_HostFirstOthersSortedByAddress) {
  const JobSpec job = job_of(4);
  Membership membership(job);
  EXPECT_FALSE(add(membership, 1, node_of(job, "10.0.0.10")));
  EXPECT_FALSE(add(membership, 2, node_of(job, "10.0.0.9")));
  EXPECT_FALSE(add(membership, 3, node_of(job, "10.0.0.50", 2, true)));
  EXPECT_FALSE(add(membership, 4, node_of(job, "10.0.0.1")));
  EXPECT_THAT(order(membership), ElementsAre("10.0.0.50", "10.0.0.1", "10.0.0.9", "10.0.0.10"));
}

TEST(Membership, SomeWithRanksOfTheirOwn_OthersFillTheGaps) {
  const JobSpec job = job_of(4);
  Membership membership(job);
  wire::Join third = node_of(job, "a");
  third.set_node_rank(2);
  EXPECT_FALSE(add(membership, 1, third));
  EXPECT_FALSE(add(membership, 2, node_of(job, "z")));
  EXPECT_FALSE(add(membership, 3, node_of(job, "h", 1, true)));
  EXPECT_FALSE(add(membership, 4, node_of(job, "b")));
  EXPECT_THAT(order(membership), ElementsAre("h", "b", "a", "z"));
}

TEST(Membership, OtherJob_RefusedNamingBoth) {
  Membership membership(job_of(2));
  wire::Join info = node_of(job_of(2), "n");
  info.mutable_job()->set_job_id("theirs");
  expect_refused(add(membership, 1, info), ErrorCode::kUsage,
                 {"node n", "job 'default'", "job 'theirs'", "--rdzv_port"});
}

TEST(Membership, OtherVersionOrProtocol_RefusedNamingBoth) {
  Membership membership(job_of(2));
  wire::Join info = node_of(job_of(2), "n");
  info.mutable_job()->set_version("9.9.9");
  expect_refused(add(membership, 1, info), ErrorCode::kUsage, {"9.9.9", "1.2.3"});
  info.mutable_job()->set_version("1.2.3");
  info.mutable_job()->set_protocol(99);
  expect_refused(add(membership, 1, info), ErrorCode::kUsage, {"protocol 99"});
}

TEST(Membership, OtherNodeCountOrList_RefusedNamingBoth) {
  Membership counted(job_of(2));
  expect_refused(add(counted, 1, node_of(job_of(3), "n")), ErrorCode::kUsage,
                 {"expects 3 nodes", "expects 2"});
  Membership listed(job_of({"a", "b"}));
  expect_refused(add(listed, 1, node_of(job_of({"b", "a"}), "b")), ErrorCode::kUsage,
                 {"--ips=b,a", "--ips=a,b"});
}

TEST(Membership, LongListByItsDigest_IsComparedToo) {
  std::vector<std::string> addresses;
  for (int i = 0; i < 100; ++i) addresses.push_back("node" + std::to_string(i));
  Membership membership(job_of(addresses));
  wire::Join info = node_of(job_of(addresses), "node7");
  EXPECT_FALSE(add(membership, 1, info));
  std::swap(addresses[0], addresses[1]);
  info = node_of(job_of(addresses), "node8");
  expect_refused(add(membership, 2, info), ErrorCode::kUsage, {"another", "--ips", "same order"});
}

TEST(Membership, OtherFlag_RefusedNamingIt) {
  Membership membership(job_of(2));
  wire::Join info = node_of(job_of(2), "n");
  set_values(info.mutable_job()->mutable_agreed_config(), {{"--run_mode", "ps"}});
  expect_refused(add(membership, 1, info), ErrorCode::kUsage,
                 {"--run_mode is 'ps' there and 'collective' on the host"});
  info.mutable_job()->clear_agreed_config();
  expect_refused(add(membership, 1, info), ErrorCode::kUsage, {"--run_mode is not set there"});
}

TEST(Membership, Skew_RefusedWithEveryDifference) {
  JobSpec job = job_of(2);
  set_values(job.config.mutable_fingerprint(),
             {{"NCCL_DEBUG", "INFO"}, {"train.json", "hash 1"}, {"glibc", "2.36"}});
  Membership membership(job);
  wire::Join info = node_of(job, "n");
  set_values(info.mutable_job()->mutable_fingerprint(),
             {{"train.json", "hash 2"}, {"glibc", "2.36"}});
  EXPECT_THAT(membership.skew(info), SizeIs(2));
  expect_refused(add(membership, 1, info), ErrorCode::kUsage,
                 {"train.json is 'hash 2' there and 'hash 1' on the host",
                  "NCCL_DEBUG is not set there and 'INFO' on the host", "--allow_skew"});
}

TEST(Membership, SkewAllowedByEither_IsIn) {
  JobSpec job = job_of(2);
  set_values(job.config.mutable_fingerprint(), {{"glibc", "2.36"}});
  for (const bool by_host : {true, false}) {
    job.config.set_allow_skew(by_host);
    Membership membership(job);
    wire::Join info = node_of(job, "n");
    info.mutable_job()->set_allow_skew(!by_host);
    set_values(info.mutable_job()->mutable_fingerprint(), {{"glibc", "2.39"}});
    EXPECT_FALSE(add(membership, 1, info));
  }
}

TEST(Membership, SameAddressTwice_SecondRefused) {
  const JobSpec job = job_of(3);
  Membership membership(job);
  EXPECT_FALSE(add(membership, 1, node_of(job, "n")));
  wire::Join again = node_of(job, "n");
  again.set_instance("another process");
  expect_refused(add(membership, 2, again), ErrorCode::kUsage, {"joined already", "host-n"});
  EXPECT_EQ(membership.members().size(), 1u);
}

TEST(Membership, SameProcessAgain_ReplacesItsOldSession) {
  const JobSpec job = job_of(3);
  Membership membership(job);
  std::optional<SessionId> replaced;
  EXPECT_FALSE(membership.add(1, node_of(job, "n"), &replaced));
  EXPECT_FALSE(replaced);
  EXPECT_FALSE(membership.add(2, node_of(job, "n"), &replaced));
  EXPECT_EQ(replaced, 1u);
  EXPECT_EQ(membership.members().size(), 1u);
  EXPECT_TRUE(membership.members().contains(2));
}

TEST(Membership, SameRankTwice_SecondRefusedNamingTheFirst) {
  const JobSpec job = job_of(3);
  Membership membership(job);
  wire::Join info = node_of(job, "first");
  info.set_node_rank(1);
  EXPECT_FALSE(add(membership, 1, info));
  wire::Join second = node_of(job, "second");
  second.set_node_rank(1);
  expect_refused(add(membership, 2, second), ErrorCode::kUsage,
                 {"node second", "belongs to first"});
}

TEST(Membership, RankOutsideOrZeroWithoutHosting_Refused) {
  const JobSpec job = job_of(2);
  Membership membership(job);
  wire::Join info = node_of(job, "n");
  info.set_node_rank(2);
  expect_refused(add(membership, 1, info), ErrorCode::kUsage, {"from 0 to 1"});
  info.set_node_rank(0);
  expect_refused(add(membership, 1, info), ErrorCode::kUsage, {"hosts the rendezvous"});
  wire::Join host = node_of(job, "h", 1, true);
  host.set_node_rank(1);
  expect_refused(add(membership, 1, host), ErrorCode::kUsage, {"it is node 0 and not 1"});
}

TEST(Membership, AddressNotListed_RefusedListingThem) {
  const JobSpec job = job_of({"a", "b"});
  Membership membership(job);
  expect_refused(add(membership, 1, node_of(job, "c")), ErrorCode::kUsage, {"a, b", "--host"});
}

TEST(Membership, TooManyGuests_KeepsTheHostsPlace) {
  const JobSpec job = job_of(2);
  Membership membership(job);
  EXPECT_FALSE(add(membership, 1, node_of(job, "a")));
  expect_refused(add(membership, 2, node_of(job, "b")), ErrorCode::kStale, {"all 2 nodes"});
  EXPECT_FALSE(add(membership, 3, node_of(job, "h", 1, true)));
  EXPECT_TRUE(membership.complete());
}

TEST(Membership, NodeWithoutRanks_Refused) {
  const JobSpec job = job_of(2);
  Membership membership(job);
  expect_refused(add(membership, 1, node_of(job, "n", 0)), ErrorCode::kUsage, {"no ranks"});
}

TEST(Membership, Missing_NamesListedNodesOrCounts) {
  const JobSpec listed_job = job_of({"a", "b", "c"});
  Membership listed(listed_job);
  EXPECT_FALSE(add(listed, 1, node_of(listed_job, "b")));
  EXPECT_EQ(listed.missing(), "a (node 0), c (node 2)");
  EXPECT_EQ(listed.present(), "b");
  listed.remove(1);
  EXPECT_EQ(listed.missing(), "a (node 0), b (node 1), c (node 2)");
  EXPECT_FALSE(add(listed, 2, node_of(listed_job, "b")));  // its place is free again
  Membership counted(job_of(4));
  EXPECT_FALSE(add(counted, 1, node_of(job_of(4), "b")));
  EXPECT_EQ(counted.missing(), "3 more");
}

TEST(Membership, MoreGuestsThanWanted_NoneIsMissing) {
  JobSpec spec = job_of(2);
  spec.restarts.max_restarts = 1;
  Membership members(spec);
  std::optional<SessionId> replaced;
  for (SessionId id = 1; id <= 4; ++id) {
    EXPECT_FALSE(members.add(id, node_of(spec, "g" + std::to_string(id)), &replaced));
  }
  EXPECT_EQ(members.missing(), "0 more");  // but the host
}

TEST(AddressLess, Numbers_OrderedByValue) {
  EXPECT_TRUE(address_less("10.0.0.9", "10.0.0.10"));
  EXPECT_FALSE(address_less("10.0.0.10", "10.0.0.9"));
  EXPECT_TRUE(address_less("node2", "node10"));
  EXPECT_TRUE(address_less("node", "node1"));
  EXPECT_FALSE(address_less("a", "a"));
  EXPECT_NE(address_less("n01", "n1"), address_less("n1", "n01"));  // some order, but an order
}

TEST(ListSome, Many_CountsTheRest) {
  EXPECT_EQ(list_some({"a", "b"}), "a, b");
  EXPECT_EQ(list_some({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}),
            "1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
}

TEST(Membership, Servers_AreNumberedApartFromTrainers) {
  Membership membership(job_of({"a", "b"}));
  std::optional<SessionId> replaced;
  wire::Join first = node_of(membership.spec(), "a", 3),
             second = node_of(membership.spec(), "b", 2);
  first.mutable_node()->set_servers(1);
  second.mutable_node()->set_servers(1);
  EXPECT_FALSE(membership.add(1, first, &replaced));
  EXPECT_FALSE(membership.add(2, second, &replaced));
  const auto world = membership.assign_ranks(1);
  EXPECT_EQ(world->world_size(), 3);
  EXPECT_EQ(world->servers(), 2);
  EXPECT_EQ(rank_of(world->nodes(1), 0), 1);
  EXPECT_EQ(rank_of(world->nodes(1), 1), 2);
}

TEST(Membership, ServersBeyondTheRanks_AreRefused) {
  Membership membership(job_of({"a", "b"}));
  std::optional<SessionId> replaced;
  wire::Join info = node_of(membership.spec(), "a", 2);
  info.mutable_node()->set_servers(3);
  EXPECT_TRUE(membership.add(1, info, &replaced));
  info.mutable_node()->set_servers(0);
  info.mutable_node()->add_ranks(1);
  EXPECT_TRUE(membership.add(1, info, &replaced));
}

}  // namespace
}  // namespace fleet
