#include "launch/planning/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<ListedNode> expand(const std::string& list) { return expand_nodes(list, "--ips"); }

Error list_refusal(const std::string& list) {
  return thrown_by([&] { expand(list); });
}

TEST(NodeList, Nothing_IsNoNode) { EXPECT_THAT(expand(""), IsEmpty()); }

TEST(NodeList, AddressesAndNames_KeepTheirOrder) {
  EXPECT_THAT(expand("10.0.0.2, b ,a"),
              ElementsAre(ListedNode{"10.0.0.2", 0}, ListedNode{"b", 0}, ListedNode{"a", 0}));
}

TEST(NodeList, Ranges_AreWrittenOut) {
  EXPECT_THAT(expand("n[08-10,20].x,m"),
              ElementsAre(ListedNode{"n08.x", 0}, ListedNode{"n09.x", 0}, ListedNode{"n10.x", 0},
                          ListedNode{"n20.x", 0}, ListedNode{"m", 0}));
  EXPECT_THAT(expand("10.0.0.[9-10]"),
              ElementsAre(ListedNode{"10.0.0.9", 0}, ListedNode{"10.0.0.10", 0}));
  EXPECT_THAT(expand("r[1-2]n[1-2]"), ElementsAre(ListedNode{"r1n1", 0}, ListedNode{"r1n2", 0},
                                                  ListedNode{"r2n1", 0}, ListedNode{"r2n2", 0}));
}

TEST(NodeList, Counts_BelongToEveryNodeOfARange) {
  EXPECT_THAT(expand("a:8,n[1-2]:4"),
              ElementsAre(ListedNode{"a", 8}, ListedNode{"n1", 4}, ListedNode{"n2", 4}));
}

TEST(NodeList, Ipv6_WithAndWithoutBrackets) {
  EXPECT_THAT(
      expand("fd00::1,[fd00::2],[fd00::3]:4"),
      ElementsAre(ListedNode{"fd00::1", 0}, ListedNode{"fd00::2", 0}, ListedNode{"fd00::3", 4}));
}

TEST(NodeList, Text_ComesBackInOneForm) {
  EXPECT_EQ(list_text(expand("n[1-2]:4, [fd00::3]:4,[fd00::4]")), "n1:4,n2:4,[fd00::3]:4,fd00::4");
}

TEST(NodeList, WhatMakesNoSense_IsNamed) {
  EXPECT_THAT(list_refusal("a,,b"), IsUsageError("--ips "));
  EXPECT_THAT(list_refusal("a:x").what(), HasSubstr("'x' is not a number of GPUs"));
  EXPECT_THAT(list_refusal("a:0"), IsUsageError("--ips a:0"));
  EXPECT_THAT(list_refusal("n[1-2"), IsUsageError("--ips n[1-2"));
  EXPECT_THAT(list_refusal("n1-2]"), IsUsageError("--ips n1-2]"));
  EXPECT_THAT(list_refusal("n[2-1]").what(), HasSubstr("'2-1' is not a range"));
  EXPECT_THAT(list_refusal("n[a]"), IsUsageError("--ips n[a]"));
  EXPECT_THAT(list_refusal("n[1-9999999]"), IsUsageError("--ips n[1-9999999]"));
  EXPECT_THAT(list_refusal("a[1-999]b[1-999]"), IsUsageError("--ips a[1-999]b[1-999]"));
  EXPECT_THAT(list_refusal("[fd00::1"), IsUsageError("--ips [fd00::1"));
  EXPECT_THAT(list_refusal("a b"), IsUsageError("--ips a b"));
  EXPECT_THAT(list_refusal("@/no/such/file"), IsUsageError("--ips @/no/such/file"));
}

ErrorCode code_of(const std::string& list) {
  try {
    expand(list);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "accepted: " << list.substr(0, 80);
  return ErrorCode::kInternal;
}

// The loop over such a range had no end: the number behind the last one does not exist.
TEST(NodeList, RangeUpToTheLargestNumber_IsRefused) {
  EXPECT_EQ(code_of("n[9223372036854775807]"), ErrorCode::kUsage);
  EXPECT_EQ(code_of("n[9223372036854775806-9223372036854775807]"), ErrorCode::kUsage);
}

TEST(NodeList, WhatIsMeantToTakeMuch_IsRefused) {
  std::string ranges, zeros(100, '0'), name(100'000, 'x');
  for (int i = 0; i < 100'000; ++i) ranges += "[1]";  // one call deeper each
  EXPECT_EQ(code_of(ranges), ErrorCode::kUsage);
  EXPECT_EQ(code_of("n[1-65536]" + name), ErrorCode::kUsage);
  EXPECT_EQ(code_of("n[" + zeros + "1]"), ErrorCode::kUsage);
  EXPECT_EQ(code_of("n[]"), ErrorCode::kUsage);
}

struct HostFile : ::testing::Test {
  HostFile() {
    std::string pattern = ::testing::TempDir() + "fleet_hosts.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder + "/hosts";
  }
  ~HostFile() override { std::filesystem::remove_all(folder); }
  std::string folder, path;
};

TEST_F(HostFile, Lines_AreEntries) {
  std::ofstream(path) << "# the cluster\na slots=8\n\n  b:4 # the old one\nn[1-2],c\n";
  EXPECT_THAT(expand("@" + path + ",last"),
              ElementsAre(ListedNode{"a", 8}, ListedNode{"b", 4}, ListedNode{"n1", 0},
                          ListedNode{"n2", 0}, ListedNode{"c", 0}, ListedNode{"last", 0}));
}

// As Notepad and PowerShell save it.
TEST_F(HostFile, OfWindows_IsRead) {
  std::ofstream(path) << "\xEF\xBB\xBF"
                      << "a slots=8\r\nb\r\n";
  EXPECT_THAT(expand("@" + path), ElementsAre(ListedNode{"a", 8}, ListedNode{"b", 0}));
  std::ofstream(path) << std::string(
      "\xFF\xFE"
      "a\0\n\0",
      6);
  EXPECT_THAT(list_refusal("@" + path), IsUsageError("--ips @" + path));
}

TEST_F(HostFile, BadLine_IsNamed) {
  std::ofstream(path) << "a\nb:many\n";
  EXPECT_THAT(list_refusal("@" + path), IsUsageError("--ips, " + path + " line 2: b:many"));
}

TEST_F(HostFile, Empty_IsAnError) {
  std::ofstream(path) << "# nobody\n";
  EXPECT_THAT(list_refusal("@" + path), IsUsageError("--ips @" + path));
}

TEST_F(HostFile, WithoutEnd_IsRefused) {
  EXPECT_THAT(list_refusal("@/dev/zero"), IsUsageError("--ips @/dev/zero"));
}

TEST_F(HostFile, PipeOfAShell_IsRead) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([this] { std::ofstream(path) << "a\nb\n"; });
  EXPECT_EQ(list_text(expand_nodes("@" + path, "test")), "a,b");
  writer.join();
}

TEST(NodeList, HostFilesOfOtherLaunchers_AreRead) {
  const std::string path = ::testing::TempDir() + "hostfile_of_others";
  std::ofstream(path) << "aa slots=2 max_slots=4  # Open MPI\n"
                         "worker-2\tslots=8\n"
                         "fd00::1 slots=3\n"
                         "bb max-slots=4\n"
                         "host1:2\n"
                         "c, d\n";
  EXPECT_EQ(list_text(expand_nodes("@" + path, "test")),
            "aa:2,worker-2:8,[fd00::1]:3,bb,host1:2,c,d");
  std::filesystem::remove(path);
}

TEST(NodeList, SortedByAddress_NumbersComeBeforeNames) {
  std::vector<ListedNode> nodes = expand_nodes("b,10.0.0.10,fd00::2,10.0.0.9:4,a", "test");
  sort_by_address(&nodes);
  EXPECT_EQ(list_text(nodes), "10.0.0.9:4,10.0.0.10,fd00::2,a,b");
}

}  // namespace
}  // namespace fleet
