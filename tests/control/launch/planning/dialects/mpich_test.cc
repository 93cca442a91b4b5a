#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/planning/dialects/dialect.h"
#include "tests/control/launch/planning/dialects/fake_store.h"
#include "tests/control/launch/sample_job.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(MpichDialect, HasPmisNames) {
  EXPECT_THAT(dialect_named("mpich").variables(sample_job(false), 1, {}),
              UnorderedElementsAre(Pair("PMI_FD", "3"), Pair("PMI_RANK", "3"),
                                   Pair("PMI_SIZE", "4"), Pair("PMI_SPAWNED", "0"),
                                   Pair("MPI_LOCALRANKID", "1"), Pair("MPI_LOCALNRANKS", "2")));
}

TEST(MpichDialect, TwoNodes_MeetThroughTheStore) {
  EventLoop loop;
  auto store = std::make_shared<FakeStore>();
  std::vector<std::string> told[2];
  std::unique_ptr<RankService> nodes[2];
  for (int node = 0; node < 2; ++node) {
    Assignment assignment = sample_job(false);
    assignment.node_rank = node;
    nodes[node] = dialect_named("mpich").serve(
        {loop, assignment, 0, store, [&told, node](int local_rank, const std::string& line) {
           told[node].push_back(std::to_string(local_rank) + " " + line);
         }});
  }
  for (int round = 0; round < 2; ++round) {
    const std::string key = "key" + std::to_string(round);
    nodes[1]->on_rank_bytes(0, "cmd=put kvsname=fleet_1 key=" + key + " value=v\n");
    for (int node = 1; node >= 0; --node) {
      told[node].clear();
      for (int local_rank = 0; local_rank < 2; ++local_rank) {
        EXPECT_THAT(told[node], IsEmpty());
        nodes[node]->on_rank_bytes(local_rank, "cmd=barrier_in\n");
      }
    }
    for (int node = 0; node < 2; ++node) {
      EXPECT_THAT(told[node], ElementsAre("0 cmd=barrier_out\n", "1 cmd=barrier_out\n"));
    }
    told[0].clear();
    nodes[0]->on_rank_bytes(1, "cmd=get kvsname=fleet_1 key=" + key + "\n");
    EXPECT_THAT(told[0], ElementsAre("1 cmd=get_result rc=0 msg=success value=v\n"));
  }
}

}  // namespace
}  // namespace fleet
