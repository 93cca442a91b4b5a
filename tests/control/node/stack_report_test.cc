#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/commands.h"
#include "base/error.h"
#include "diagnosis/stacks.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StackReport sample_report() {
  StackReport report;
  for (int rank = 0; rank < 4; ++rank) {
    StackCluster& cluster = *report.mutable_stacks()->add_clusters();
    RankStack& stack = *cluster.add_ranks();
    stack.set_rank(rank);
    stack.set_local_rank(rank % 2);
    stack.set_node_rank(rank / 2);
    stack.set_state(rank == 2 ? 'T' : 'S');
    cluster.add_frames("wait");
    cluster.add_frames("main");
    cluster.add_python_frames("step (/x/train.py:12)");
  }
  report.add_silent(7);
  CollectiveWait& wait = *report.add_waits();
  wait.set_kind(CollectiveWait::MISMATCH);
  wait.set_group("dp");
  wait.mutable_call()->set_kind("all_reduce");
  wait.mutable_call()->set_sequence(5);
  wait.mutable_call()->set_size(4096);
  wait.mutable_call()->set_purpose("bucket 4");
  wait.add_missing(2);
  wait.add_waiting(0);
  wait.add_waiting(1);
  wait.set_line("rank 2 is elsewhere");
  report.add_notes("no dump from rank 3");
  return report;
}

TEST(StackReport, Text_NamesTheOddRankAndWhoIsSilent) {
  const std::string text = stack_report_text(sample_report());
  EXPECT_THAT(text, AllOf(HasSubstr("4 ranks; look at rank 2"), HasSubstr("it is stopped")));
  EXPECT_THAT(text, HasSubstr("rank 2 is elsewhere"));
  EXPECT_THAT(text, AllOf(HasSubstr("node 7 sent no stacks"), HasSubstr("no dump from rank 3")));
}

TEST(StackReport, Json_NamesTheOddRankAndWhoIsSilent) {
  const auto json = nlohmann::json::parse(stack_report_json(sample_report()));
  EXPECT_EQ(json["odd_rank"], 2);
  EXPECT_EQ(json["clusters"][0]["python_frames"], nlohmann::json({"step (/x/train.py:12)"}));
  EXPECT_EQ(json["clusters"][0]["python_missing"], "");
  EXPECT_EQ(json["silent_nodes"], nlohmann::json({7}));
  EXPECT_EQ(json["notes"], nlohmann::json({"no dump from rank 3"}));
  EXPECT_EQ(json["waits"], nlohmann::json::parse(R"([{"kind": "mismatch", "group": "dp",
      "operation": "all_reduce", "sequence": 5, "for": "bucket 4", "bytes": 4096,
      "missing": [2], "waiting": [0, 1], "text": "rank 2 is elsewhere"}])"));
}

TEST(StacksCommand, WrongArguments_AreRefused) {
  const Command& stacks = *find_command("stacks");
  EXPECT_THROW(run_command(stacks, {"--no_such"}), Error);
  EXPECT_THROW(run_command(stacks, {"job", "--format", "xml"}), Error);
  EXPECT_THROW(run_command(stacks, {"job", "another"}), Error);
}

}  // namespace
}  // namespace fleet
