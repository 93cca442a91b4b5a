// The Store over real connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/thread.h"
#include "rendezvous/store_client.h"
#include "store/env.h"
#include "tests/control/rendezvous/grpc_nodes.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::shared_ptr<Store> store_of(RunningJob& job, int rank, int generation = 1) {
  return connect_store(job.server->local_address(), "default", generation, rank);
}

TEST(GrpcStore, Ids_ArriveAsTheyAre) {
  RunningJob job(1);
  std::string id;
  for (int i = 0; i < 128; ++i) id.push_back(static_cast<char>(i * 37));
  id[5] = '\0';
  auto reader = store_of(job, 1);
  Thread waiter("reader", [&] { EXPECT_EQ(reader->get("nccl/0", kSoon), id); });
  store_of(job, 0)->set("nccl/0", id);
  waiter.join();
}

TEST(GrpcStore, NobodySets_TimesOutNamingTheKey) {
  RunningJob job(1);
  const Error error = error_of([&] { store_of(job, 0)->get("missing", 20ms); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_EQ(error.where(), "missing");
  EXPECT_EQ(error_of([&] { store_of(job, 0)->get("missing", 0ms); }).code(), ErrorCode::kTimeout);
}

TEST(GrpcStore, Add_CountsAllCallers) {
  RunningJob job(1);
  std::vector<Thread> threads;
  for (int rank = 0; rank < 8; ++rank) {
    threads.emplace_back("adder", [&job, rank] {
      auto store = store_of(job, rank);
      for (int i = 0; i < 20; ++i) store->add("n", 1);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store_of(job, 0)->add("n", 0), 160);
  EXPECT_EQ(store_of(job, 0)->get("n", 0ms), "160");
}

TEST(GrpcStore, BarrierOf64_OpensWhenTheLastComes) {
  RunningJob job(1);
  std::atomic<int> came = 0;
  std::vector<Thread> threads;
  for (int rank = 0; rank < 64; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      auto store = store_of(job, rank);
      ++came;
      store_barrier(*store, "start", 64, kSoon);
      EXPECT_EQ(came, 64);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(GrpcStore, OtherGenerationOrJob_IsRefused) {
  RunningJob job(1);
  store_of(job, 0)->set("k", "v");
  for (const int generation : {0, 2}) {
    auto stale = store_of(job, 0, generation);
    EXPECT_EQ(error_of([&] { stale->get("k", kSoon); }).code(), ErrorCode::kStale);
    EXPECT_EQ(error_of([&] { stale->set("k", "x"); }).code(), ErrorCode::kStale);
    EXPECT_EQ(error_of([&] { stale->add("n", 1); }).code(), ErrorCode::kStale);
  }
  auto other = connect_store(job.server->local_address(), "theirs", 1, 0);
  const Error error = error_of([&] { other->get("k", kSoon); });
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("store of job 'default', not of job 'theirs'"));
  EXPECT_EQ(store_of(job, 0)->get("k", 0ms), "v");
}

TEST(GrpcStore, JobEnds_WaitersHearWhoEndedIt) {
  RunningJob job(1);
  auto store = store_of(job, 0);
  store->set("k", "v");
  std::optional<Error> waiting;
  Thread waiter("waiter", [&] { waiting = error_of([&] { store->get("never", kSoon); }); });
  RankExit exit;
  exit.set_rank(1);
  exit.set_local_rank(1);
  exit.set_signal(SIGSEGV);
  job.nodes[0]->report(exit);
  waiter.join();
  EXPECT_EQ(waiting->code(), ErrorCode::kPeerLost);
  EXPECT_THAT(waiting->what(),
              ::testing::AllOf(HasSubstr("rank 1 (local rank 1)"), HasSubstr("was killed")));
  EXPECT_EQ(error_of([&] { store->set("k", "w"); }).code(), ErrorCode::kPeerLost);
}

TEST(GrpcStore, ServerGone_SaysSo) {
  RunningJob job(1);
  auto store = store_of(job, 0);
  store->set("k", "v");
  job.server.reset();
  const Error error = error_of([&] { store->get("k", kSoon); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("node 0"));
}

TEST(GrpcStore, TooLarge_IsRefused) {
  RunningJob job(1);
  auto store = store_of(job, 0);
  store->set("big", std::string(8 << 20, 'x'));
  EXPECT_EQ(store->get("big", 0ms).size(), 8u << 20);
  EXPECT_EQ(error_of([&] { store->set("k", std::string((8 << 20) + 1, 'x')); }).code(),
            ErrorCode::kUsage);
  EXPECT_EQ(error_of([&] { store->set("k", std::string(40 << 20, 'x')); }).code(),
            ErrorCode::kUsage);
  EXPECT_EQ(error_of([&] { store->set(std::string(2000, 'k'), ""); }).code(), ErrorCode::kUsage);
}

TEST(GrpcStore, FromTheEnvironment_ConnectsOrIsAbsent) {
  unsetenv(kEnvStoreAddress);
  EXPECT_EQ(connect_store_from_env(), nullptr);
  RunningJob job(1);
  setenv(kEnvStoreAddress, job.server->local_address().c_str(), 1);
  setenv(kEnvJobId, "default", 1);
  setenv(kEnvGeneration, "1", 1);
  setenv(kEnvRank, "0", 1);
  connect_store_from_env()->set("k", "v");
  EXPECT_EQ(store_of(job, 1)->get("k", 0ms), "v");
  for (const char* name : {kEnvStoreAddress, kEnvJobId, kEnvGeneration, kEnvRank}) unsetenv(name);
}

}  // namespace
}  // namespace fleet
