// NCCL's own ids through the real rendezvous. Needs NCCL, but no GPU and no driver.
#include "comm/nccl/ids.h"

#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "rendezvous/store_client.h"
#include "tests/control/rendezvous/grpc_nodes.h"

namespace fleet {
namespace {

std::string text_of(const ncclUniqueId& id) { return std::string(id.internal, sizeof id); }

// Every rank's ids of a communicator, each rank with a connection of its own.
std::vector<std::vector<ncclUniqueId>> ids_of_all(RunningJob& job, const std::string& name,
                                                  int ranks) {
  std::vector<std::vector<ncclUniqueId>> all(ranks);
  std::vector<Thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      const auto store = connect_store(job.server->local_address(), "default", 1, rank);
      const auto get = [&](const std::string& key) { return store->get(key, kSoon); };
      all[rank] = nccl::exchange_ids(name, rank, ranks, *store, {get, {}});
    });
  }
  for (Thread& thread : threads) thread.join();
  return all;
}

TEST(NcclIds, OfOneCommunicator_AreTheSameOnEveryRankAndOfTwoDiffer) {
  RunningJob job(1);
  std::set<std::string> different;
  for (const std::string name : {"world", "world/split.0.1#0"}) {
    const auto all = ids_of_all(job, name, 2);
    ASSERT_EQ(all[0].size(), 1u);
    EXPECT_EQ(text_of(all[0][0]), text_of(all[1][0]));
    different.insert(text_of(all[0][0]));
  }
  EXPECT_EQ(different.size(), 2u);
}

TEST(NcclIds, OfManyRanks_AreSeveral) {
  ::setenv("FLEET_NCCL_RANKS_PER_ID", "2", 1);
  RunningJob job(1);
  const auto all = ids_of_all(job, "world", 5);
  ::unsetenv("FLEET_NCCL_RANKS_PER_ID");
  std::set<std::string> different;
  for (const auto& ids : all) {
    ASSERT_EQ(ids.size(), 3u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(text_of(ids[i]), text_of(all[0][i]));
  }
  for (const ncclUniqueId& id : all[0]) different.insert(text_of(id));
  EXPECT_EQ(different.size(), 3u);
}

// The interface in the line at the start.
TEST(NcclIds, Interface_IsOneOfThisMachine) {
  const std::string interface = nccl::interface_of(nccl::make_unique_id());
  EXPECT_THAT(interface, testing::ContainsRegex("^[^ ]+ \\([0-9a-f.:]+\\)$"));
}

}  // namespace
}  // namespace fleet
