#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "launch/tools/doctor/checks.h"
#include "tests/control/launch/tools/doctor/facts.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

// Nodes 10.0.0.1, 10.0.0.2, ... that reach each other.
std::vector<NodeReport> nodes(int count) {
  std::vector<NodeReport> all;
  for (int rank = 0; rank < count; ++rank) {
    NodeReport node = report_of(healthy_node());
    node.node_rank = rank;
    node.address = "10.0.0." + std::to_string(rank + 1);
    node.fingerprint = {{"glibc", "2.36"}};
    for (int other = 0; other < count; ++other) {
      if (other != rank) node.reached.push_back({other, ReachResult::kOk, "", 0.001, 0.0005});
    }
    all.push_back(std::move(node));
  }
  return all;
}
Reach& way(std::vector<NodeReport>& all, int from, int to) {
  for (Reach& reach : all[static_cast<size_t>(from)].reached) {
    if (reach.node_rank == to) return reach;
  }
  throw std::out_of_range("no such way");
}

TEST(Reachability, AllPairs_Ok) {
  EXPECT_THAT(said(check_reachability(nodes(3))),
              AllOf(HasSubstr("[ok] every node"), HasSubstr("(6 connections)")));
  EXPECT_THAT(check_reachability(nodes(1)), IsEmpty());
}

TEST(Reachability, CutPair_IsNamedWithTheKindOfFailure) {
  const std::vector<std::pair<ReachResult, std::string>> kinds = {
      {ReachResult::kRefused, "refused"},
      {ReachResult::kTimeout, "no answer (timeout)"},
      {ReachResult::kUnreachable, "unreachable (No route to host)"},
      {ReachResult::kUnexpectedPeer, "another service answers: No route to host"},
      {ReachResult::kStalled, "connects, but large packets do not arrive"},
      {ReachResult::kFailed, "No route to host"}};
  for (const auto& [result, text] : kinds) {
    auto all = nodes(3);
    way(all, 1, 2).result = result;
    way(all, 1, 2).detail = "No route to host";
    const Findings found = check_reachability(all);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].severity, Severity::kFail);
    EXPECT_EQ(found[0].what, "node 1 (10.0.0.2) to node 2 (10.0.0.3): " + text);
    EXPECT_THAT(found[0].next, Not(IsEmpty()));
  }
}

TEST(Reachability, Many_AreCounted) {
  auto all = nodes(5);
  for (NodeReport& node : all) {
    for (Reach& reach : node.reached) reach.result = ReachResult::kTimeout;
  }
  const Findings found = check_reachability(all);
  ASSERT_EQ(found.size(), 9u);
  EXPECT_EQ(found.back().what, "and 12 more of 20 connections");
}

TEST(Mtu, Differs_Warns) {
  auto all = nodes(3);
  EXPECT_EQ(said(check_mtu(all)), "[ok] 1500 on every node\n");
  all[2].mtu = 9000;
  EXPECT_EQ(worst_of(check_mtu(all)), Severity::kWarn);
}

TEST(Clocks, OffBySeconds_Warns_ByMinutesFails) {
  auto all = nodes(3);
  EXPECT_EQ(worst_of(check_clocks(all)), Severity::kOk);
  way(all, 2, 0).clock_offset = 2.5;
  EXPECT_EQ(
      said(check_clocks(all)),
      "[warn] node 2 (10.0.0.3) is 2.5 s behind node 0 -> run chrony or ntpd on every node\n");
  way(all, 2, 0).clock_offset = -300;
  EXPECT_EQ(worst_of(check_clocks(all)), Severity::kFail);
  // Slow probes give imprecise offsets.
  way(all, 2, 0).clock_offset = 2.5;
  way(all, 2, 0).round_trip = 4;
  EXPECT_EQ(worst_of(check_clocks(all)), Severity::kOk);
}

TEST(EqualGpus, OtherModel_Warns) {
  auto all = nodes(2);
  EXPECT_EQ(worst_of(check_equal_gpus(all)), Severity::kOk);
  all[1].gpus = {"NVIDIA A100", "NVIDIA A100"};
  const Findings found = check_equal_gpus(all);
  EXPECT_THAT(found, OneFinding(Severity::kWarn));
  EXPECT_THAT(found[0].what, AllOf(HasSubstr("node 1 (10.0.0.2) has 2 x NVIDIA A100"),
                                   HasSubstr("node 0 2 x NVIDIA H200")));
}

TEST(Skew, NamedPerNode_FailsUnlessAllowed) {
  auto all = nodes(3);
  EXPECT_EQ(worst_of(check_skew(all, false)), Severity::kOk);
  all[2].fingerprint = {{"glibc", "2.39"}, {"NCCL_ALGO", "Ring"}};
  const Findings found = check_skew(all, false);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].what, "NCCL_ALGO is 'Ring' on node 2 (10.0.0.3) and not set on node 0");
  EXPECT_THAT(found[1].what,
              AllOf(HasSubstr("glibc is '2.39' on node 2"), HasSubstr("'2.36' on node 0")));
  EXPECT_EQ(worst_of(check_skew(all, false)), Severity::kFail);
  EXPECT_EQ(worst_of(check_skew(all, true)), Severity::kWarn);
}

TEST(Skew, AlikeOnManyNodes_IsOneLine) {
  auto all = nodes(40);
  for (size_t node = 8; node < 40; ++node)
    all[node].fingerprint["glibc"] = node == 20 ? "2.40" : "2.39";
  const Findings found = check_skew(all, false);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].what,
              AllOf(HasSubstr("'2.39' on nodes 8-19,21-39"), HasSubstr("'2.36' on node 0")));
}

TEST(Mtu, AlikeOnManyNodes_IsOneLine) {
  auto all = nodes(4);
  all[1].mtu = all[2].mtu = 9000;
  EXPECT_THAT(said(check_mtu(all)), HasSubstr("nodes 1-2 have 9000, node 0 1500"));
}

TEST(Report, AlikeFindings_AreOneLine) {
  auto all = nodes(4);
  NodeFacts other = healthy_node();
  other.machine.open_files = 100;
  all[2].findings = report_of(other).findings;
  const JobReport report = examine(all, false);
  EXPECT_EQ(report.worst(), Severity::kFail);
  EXPECT_THAT(split(report_table(report), '\n'),
              IsSupersetOf({"ok    open files      nodes 0-1,3: at most 1048576",
                            "ok    cores           all nodes: 64 cores"}));
  EXPECT_EQ(
      report_table(report, true),
      "  FAIL  open files      node 2 (10.0.0.3): at most 100: connections of a large job and "
      "data loaders need thousands\n"
      "                        -> ulimit -n 1048576 before fleetrun\n");
}

TEST(Report, TravelsUnchanged) {
  auto all = nodes(3);
  way(all, 1, 2) = {2, ReachResult::kUnreachable, "No route\xff", -1.5, 0.25};
  const NodeReport back = decode_node_report(encode(all[1]));
  EXPECT_EQ(back.node_rank, 1);
  EXPECT_EQ(back.address, "10.0.0.2");
  EXPECT_EQ(back.hostname, "gpu01");
  EXPECT_EQ(back.findings, all[1].findings);
  EXPECT_EQ(back.fingerprint, all[1].fingerprint);
  EXPECT_EQ(back.gpus, all[1].gpus);
  EXPECT_EQ(back.mtu, 1500);
  ASSERT_EQ(back.reached.size(), 2u);
  EXPECT_EQ(back.reached[1].result, ReachResult::kUnreachable);
  EXPECT_EQ(back.reached[1].clock_offset, -1.5);
  EXPECT_EQ(back.reached[1].round_trip, 0.25);

  const JobReport report = examine(all, false), same = decode_job_report(encode(report));
  EXPECT_EQ(report_table(same), report_table(decode_job_report(encode(same))));
  EXPECT_EQ(same.entries.size(), report.entries.size());
  EXPECT_EQ(same.worst(), Severity::kFail);
}

TEST(Report, Garbage_IsAnError) {
  EXPECT_THROW(decode_node_report("{"), Error);
  EXPECT_THROW(decode_node_report("{}"), Error);
  EXPECT_THROW(decode_job_report("[1,2"), Error);
}

TEST(Report, Json_HasEveryFinding) {
  const JobReport report = examine(nodes(2), false);
  const auto json = nlohmann::json::parse(report_json(report));
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["nodes"].size(), 2u);
  ASSERT_EQ(json["findings"].size(), report.entries.size());
  for (size_t k = 0; k < report.entries.size(); ++k) {
    EXPECT_EQ(json["findings"][k]["check"], report.entries[k].finding.check);
    EXPECT_EQ(json["findings"][k]["nodes"], report.entries[k].nodes);
  }
}

}  // namespace
}  // namespace fleet
