#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "launch/planning/launch_config.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Roles roles(std::vector<std::string> arguments) {
  arguments.push_back("program");
  return parse_arguments(arguments).config.roles;
}

Error role_refusal(const std::vector<std::string>& arguments) {
  return thrown_by([&] { roles(arguments); });
}

TEST(Roles, NothingGiven_IsCollective) { EXPECT_FALSE(roles({"--nproc_per_node=2"}).wanted); }

TEST(Roles, Numbers_AreOfEachNode) {
  const Roles counted = roles({"--server_num=2", "--trainer_num=3"});
  EXPECT_TRUE(counted.wanted);
  EXPECT_FALSE(counted.listed());
  const LocalRoles local = local_roles(counted, "127.0.0.1");
  EXPECT_EQ(local.servers, 2);
  EXPECT_EQ(local.entries.size(), 5u);
}

TEST(Roles, OneNumberOrTheModeAlone_OneOfTheOtherKind) {
  EXPECT_EQ(roles({"--worker_num=3"}).server_num, 1);
  EXPECT_EQ(roles({"--server_num=3"}).trainer_num, 1);
  EXPECT_TRUE(roles({"--run_mode=ps"}).wanted);
}

TEST(Roles, Lists_AreSharedOutByAddress) {
  const Roles listed =
      roles({"--servers=10.0.0.1:80,10.0.0.2:80", "--workers=10.0.0.2:90,10.0.0.1,10.0.0.2:91"});
  EXPECT_THAT(listed.nodes(), ElementsAre(ListedNode{"10.0.0.1", 0}, ListedNode{"10.0.0.2", 0}));
  const LocalRoles local = local_roles(listed, "10.0.0.2");
  EXPECT_EQ(local.servers, 1);
  ASSERT_EQ(local.entries.size(), 3u);
  EXPECT_EQ(local.entries[0].rank, 1);
  EXPECT_EQ(local.entries[1].port, 90);
  EXPECT_EQ(local.entries[2].rank, 2);
  EXPECT_EQ(local_roles(listed, "10.0.0.1").entries[1].port, 0);
}

TEST(Roles, Ipv6) {
  const Roles listed = roles({"--servers=[fd00::1]:80", "--trainers=fd00::2,[fd00::3]:90"});
  EXPECT_EQ(listed.servers[0].address, "fd00::1");
  EXPECT_EQ(listed.trainers[0].address, "fd00::2");
  EXPECT_EQ(listed.trainers[1].address, "fd00::3");
  EXPECT_EQ(listed.trainers[1].port, 90);
}

TEST(Roles, Contradictions_AreRefused) {
  EXPECT_THAT(role_refusal({"--servers=a:1"}), IsUsageError("--servers"));
  EXPECT_THAT(role_refusal({"--servers=a:1", "--workers=a:2", "--server_num=1"}),
              IsUsageError("--servers"));
  EXPECT_THAT(role_refusal({"--servers=a:1", "--workers=a:2", "--ips=a"}), IsUsageError("--ips"));
  EXPECT_THAT(role_refusal({"--server_num=1", "--nproc_per_node=2"}),
              IsUsageError("--nproc_per_node"));
  EXPECT_THAT(role_refusal({"--run_mode=collective", "--server_num=1"}),
              IsUsageError("--server_num"));
  EXPECT_THAT(role_refusal({"--gloo_port=80"}), IsUsageError("--gloo_port"));
}

TEST(Roles, BadEntries_AreNamed) {
  EXPECT_THAT(role_refusal({"--trainers=2", "--server_num=1"}).next(), HasSubstr("--worker_num=2"));
  EXPECT_THAT(role_refusal({"--servers=3", "--worker_num=1"}).next(), HasSubstr("--server_num=3"));
  EXPECT_THAT(role_refusal({"--servers=a", "--workers=a:2"}), IsUsageError("--servers"));
  EXPECT_THAT(role_refusal({"--servers=a:x", "--workers=a:2"}), IsUsageError("--servers"));
  EXPECT_THAT(role_refusal({"--servers=a:1,a:1", "--workers=a:2"}).what(),
              HasSubstr("a:1 is listed twice"));
}

}  // namespace
}  // namespace fleet
