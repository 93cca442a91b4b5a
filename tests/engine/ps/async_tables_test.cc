// Tables on asynchronous servers.
#include <gmock/gmock.h>

#include <cstring>

#include "ps/tables/snapshot.h"
#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/tables/some_table.h"

namespace fleet::ps {
namespace {

constexpr char kAsyncSgd[] = R"({"name": "sgd"})";

std::string async_strategy(const std::string& more) {
  return R"({"a_sync": true, "a_sync_configs": {)" + more + "}}";
}

// naive with scores: the shows of a row are the occurrences of its id that were applied.
constexpr char kScores[] = R"({"embedding": {"rule": {"name": "naive"}, "shrink":
    {"every_steps": 1000000, "by_score": true, "min_score": 0, "decay": 1}}})";

class TestOfSaves : public ::testing::Test {
 protected:
  TestFolder folder_;
  // The shows of each row in a snapshot of the table.
  std::map<uint64_t, float> saved_shows(const std::string& name) const {
    const Snapshot snapshot(folder_ / (name + "/tables"));
    const RowLayout layout = snapshot.table("embedding").layout;
    std::map<uint64_t, float> shows;
    for (int shard = 0; shard < kVirtualShards; ++shard) {
      const ShardContent content = snapshot.read("embedding", shard);
      for (size_t at = 0; at < content.records.size(); at += record_bytes(layout)) {
        const std::byte* const record = &content.records[at];
        float& of = shows[record_head(record).id];
        std::memcpy(&of, record + sizeof(RecordHead) + layout.show_at() * sizeof(float), sizeof of);
      }
    }
    return shows;
  }
};

void add_occurrences(const ClickBatch& batch, std::map<uint64_t, float>* counts) {
  for (const int64_t id : batch.ids) {
    if (id >= 0) (*counts)[static_cast<uint64_t>(id)] += 1;
  }
}

class AsyncTableRule : public ::testing::TestWithParam<const char*> {};

TEST_P(AsyncTableRule, OneTrainerWithoutStaleness_IsSync) {
  const std::string tables = R"({"embedding": {"rule": {"name": ")" + std::string(GetParam()) +
                             R"(", "learning_rate": 0.3}, "initializer":
                             {"name": "normal", "deviation": 0.1}}})";
  ClickRun sync(click_job(kAsyncSgd, tables), 1, 2);
  ClickRun async(click_job(kAsyncSgd, tables, kWideDeep, async_strategy(R"("max_staleness": 0)")),
                 1, 2);
  for (ClickRun* run : {&sync, &async}) {
    run->begin();
    run->train(0, 5);
    EXPECT_GT(run->rows(0), kClickIds / 3);
  }
  EXPECT_EQ(async.saved(), sync.saved());
  for (uint64_t id = 0; id < kClickIds; ++id) EXPECT_EQ(async.row(0, id), sync.row(0, id)) << id;
}

INSTANTIATE_TEST_SUITE_P(Rules, AsyncTableRule,
                         ::testing::Values("naive", "adagrad", "std_adagrad", "adam",
                                           "dense_adagrad"));

class AsyncTables : public TestOfSaves {
 protected:
  // Also if acceptances are lost, so that pushes arrive twice.
  void expect_every_push_once(const std::string& configs) {
    constexpr int kTrainers = 3, kSteps = 8;
    ClickRun run(click_job(kAsyncSgd, kScores, kWideDeep, async_strategy(configs)), kTrainers, 2);
    for (const auto& server : run.servers().all) server->repeat_pushes();
    run.begin();
    run.train(0, kSteps);
    run.each([&](int t) { run.client(t).settle(run.trainer(t).executor()); });
    const std::string name = "end" + std::to_string(++saves_);
    run.save(folder_ / name);
    std::map<uint64_t, float> want;
    for (int t = 0; t < kTrainers; ++t) {
      for (int step = 0; step < kSteps; ++step) add_occurrences(ClickBatch(step, t), &want);
    }
    EXPECT_EQ(saved_shows(name), want) << configs;
  }

 private:
  int saves_ = 0;
};

TEST_F(AsyncTables, Pushes_AreAllAppliedOnce) {
  expect_every_push_once("");
  expect_every_push_once(R"("max_staleness": 1)");
}

TEST_F(AsyncTables, MergedPushes_AreAllAppliedOnce) {
  expect_every_push_once(R"("max_merge_var_num": 4, "send_queue_size": 2)");
  expect_every_push_once(
      R"("max_merge_var_num": 4, "send_queue_size": 3, "independent_recv_thread": true,
         "min_send_grad_num_before_recv": 2)");
}

// Rows of a step have the updates of all trainers up to `max_staleness` steps before it.
TEST_F(AsyncTables, MaxStaleness_BoundsTheAgeOfPulledRows) {
  constexpr int kTrainers = 3, kSteps = 12, kStaleness = 2;
  const std::string strategy = async_strategy(R"("max_staleness": 2)");
  ClickRun run(click_job(kAsyncSgd, kScores, kWideDeep, strategy), kTrainers, 2);
  run.begin();
  std::vector<std::atomic<int64_t>> begun(kTrainers);
  run.each([&](int t) {
    for (int64_t step = 0; step < kSteps; ++step) {
      begun[static_cast<size_t>(t)] = step;
      run.trainer(t).train(run.client(t), ClickBatch(step, t), step);
      for (const auto& other : begun) EXPECT_GE(other + 1, step + 1 - kStaleness);
    }
    run.client(t).finish();
  });
}

TEST_F(AsyncTables, AdmissionByCount_DoesNotWaitForOtherTrainers) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"},
      "entry": {"kind": "count", "count": 4}}})";
  ClickRun run(click_job(kAsyncSgd, tables, kWideDeep, async_strategy("")), 2, 2);
  run.begin();
  for (int step = 0; step < 4; ++step)
    run.trainer(1).train(run.client(1), ClickBatch(step, 1), step);
  run.client(1).settle(run.trainer(1).executor());
  std::map<uint64_t, float> counts;
  for (int step = 0; step < 4; ++step) add_occurrences(ClickBatch(step, 1), &counts);
  const auto admitted =
      std::ranges::count_if(counts, [](const auto& one) { return one.second >= 4; });
  EXPECT_GT(admitted, 3);
  EXPECT_EQ(run.rows(0), admitted);
  const auto waiting = std::ranges::find_if(counts, [](const auto& one) { return one.second < 4; });
  ASSERT_NE(waiting, counts.end());
  EXPECT_EQ(run.row(0, waiting->first), std::vector<float>(5));
}

TEST_F(AsyncTables, Shrink_FollowsTheSlowestTrainer) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"},
      "shrink": {"every_steps": 2, "age": 1}}})";
  ClickRun run(click_job(kAsyncSgd, tables, kWideDeep, async_strategy("")), 2, 2);
  run.begin();
  const auto train = [&](int t, int64_t step) {
    run.trainer(t).train(run.client(t), ClickBatch(step, t), step);
    run.client(t).settle(run.trainer(t).executor());
    run.client(t).resume(run.trainer(t).executor());
  };
  for (int64_t step = 0; step < 4; ++step) train(0, step);
  train(1, 0);
  EXPECT_GT(run.rows(0), 0);
  train(1, 1);
  EXPECT_EQ(run.rows(0), 0);  // every age is 1
}

// Trainers go on while a shrink waits for the end of a save; it is made up for.
TEST_F(AsyncTables, ShrinkDuringASave_HoldsNoPullsUp) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"},
      "shrink": {"every_steps": 1, "age": 3}}})";
  ClickRun run(click_job(kAsyncSgd, tables, kWideDeep, async_strategy(R"("max_staleness": 0)")), 1,
               2);
  run.begin();
  run.client(0).cut_tables();
  run.train(0, 3);
  EXPECT_GT(run.rows(0), 0);
  run.client(0).save_tables("");
  EXPECT_EQ(run.rows(0), 0);  // three shrinks
}

// The same batch in all steps adds the same number of shows: a snapshot with a part of a push would
// have rows of other multiples.
TEST_F(AsyncTables, SnapshotUnderLoad_HasWholePushes) {
  ClickRun run(click_job(kAsyncSgd, kScores, kWideDeep, async_strategy("")), 2, 1);
  run.begin();
  const ClickBatch batch(0, 1);
  const auto train = [&](int64_t from, int64_t end) {
    for (int64_t step = from; step < end; ++step) run.trainer(1).train(run.client(1), batch, step);
  };
  train(0, 3);
  std::atomic<bool> ends{false};
  Thread other("trainer1", [&] {
    for (int64_t step = 3; !ends && step < 10'000; ++step) train(step, step + 1);
  });
  run.client(0).cut_tables();
  run.write(folder_ / "middle");
  ends = true;
  other.join();
  std::map<uint64_t, float> each;
  add_occurrences(batch, &each);
  const std::map<uint64_t, float> shows = saved_shows("middle");
  ASSERT_EQ(shows.size(), each.size());
  const float steps = shows.begin()->second / each.begin()->second;
  EXPECT_GE(steps, 0);
  for (const auto& [id, count] : each) EXPECT_EQ(shows.at(id), count * steps) << id;
}

// All trainers' loops count the cut; only trainer 0's reaches the servers.
TEST_F(AsyncTables, CutOfTrainer0_LetsOthersTrainOn) {
  ClickRun run(click_job(kAsyncSgd, kScores, kWideDeep, async_strategy("")), 2, 2);
  run.begin();
  run.client(1).cut_tables();
  run.trainer(1).train(run.client(1), ClickBatch(0, 1), 0);
  run.client(1).settle(run.trainer(1).executor());
  EXPECT_GT(run.rows(0), 0);
}

class ReplacedTables : public TestOfSaves, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, ReplacedTables,
                         ::testing::Values(R"({"a_sync": true})",
                                           R"({"a_sync_configs": {"k_steps": 1}})"));

// Also if the acceptances of both processes are lost.
TEST_P(ReplacedTables, PushesOfBothProcesses_AreAppliedOnce) {
  constexpr int kTrainers = 2, kSteps = 6;
  ClickRun run(click_job(kAsyncSgd, kScores, kWideDeep, GetParam()), kTrainers, 2);
  for (const auto& server : run.servers().all) server->repeat_pushes();
  run.begin();
  const auto train = [&](int t, int64_t from, int64_t end) {
    for (int64_t step = from; step < end; ++step) {
      run.trainer(t).train(run.client(t), ClickBatch(step, t), step);
    }
    run.client(t).settle(run.trainer(t).executor());
  };
  train(1, 0, 3);
  run.lose(1);
  train(0, 0, 3);
  const int64_t next = run.replace(1);
  EXPECT_EQ(next, 3);
  for (int t = 0; t < kTrainers; ++t) train(t, next, kSteps);
  run.save(folder_ / "end");
  std::map<uint64_t, float> want;
  for (int t = 0; t < kTrainers; ++t) {
    for (int step = 0; step < kSteps; ++step) add_occurrences(ClickBatch(step, t), &want);
  }
  EXPECT_EQ(saved_shows("end"), want);
}

TEST_P(ReplacedTables, SnapshotThatTrainer0HasCut_HoldsNoNextOneUp) {
  ClickRun run(click_job(kAsyncSgd, kScores, kWideDeep, GetParam()), 2, 2);
  run.begin();
  run.trainer(0).train(run.client(0), ClickBatch(0, 0), 0);
  run.client(0).settle(run.trainer(0).executor());
  run.client(0).cut_tables();
  run.lose(0);
  EXPECT_EQ(run.replace(0), 1);
  run.trainer(0).train(run.client(0), ClickBatch(1, 0), 1);
  run.client(0).settle(run.trainer(0).executor());
  run.save(folder_ / "next");
  EXPECT_EQ(static_cast<int64_t>(saved_shows("next").size()), run.rows(0));
}

// Trainer 0 was lost while it sent the cut.
TEST_F(AsyncTables, CutThatCameToOneServer_IsMadeUpForByTheNext) {
  const TableSettings settings = some_settings("'dim': 1, 'rule': {'name': 'naive'}");
  std::vector<std::unique_ptr<TableHost>> hosts;
  for (int s = 0; s < 2; ++s) {
    hosts.push_back(
        std::make_unique<TableHost>(std::vector{settings}, s, 2, 2, ServerMode::kAsync));
  }
  const Json cut = {{"command", "cut"}, {"cuts", 1}};
  hosts[0]->command(0, delivered(json_message(MessageType::kCommand, cut)));
  for (const auto& host : hosts) host->replace(0);
  ASSERT_NE(hosts[0]->table(0).version(), hosts[1]->table(0).version());
  std::vector<Message> results(2);
  TableClient next(
      {}, {},
      {.servers = 2,
       .send =
           [&](int server, const Message& message) {
             const auto at = static_cast<size_t>(server);
             const RowAnswers answers = hosts[at]->command(0, delivered(message));
             results[at] = delivered(answers.at(0).message);
           },
       .wait = [&](int server, MessageType) { return results[static_cast<size_t>(server)]; }});
  next.cut();
  EXPECT_EQ(hosts[0]->table(0).version(), hosts[1]->table(0).version());
}

TEST_F(AsyncTables, BadGradient_LeavesTheRowsOut) {
  TableHost host({some_settings("'dim': 1, 'rule': {'name': 'naive', 'learning_rate': 1}, "
                                "'initializer': {'name': 'constant'}")},
                 0, 1, 2, ServerMode::kAsync);
  const auto push = [&](uint64_t sequence, bool left_out) {
    Message message =
        push_message({.ids = {7}, .shows = {1}, .clicks = {0}, .values = {-1}}, 1, sequence, 0);
    host.push(1, delivered(message));
    host.apply_push(1, left_out, 0.3f);
  };
  push(1, false);
  push(2, true);
  push(3, false);
  EXPECT_EQ(looked_up(host.table(0), {7}), std::vector<float>{2});
  EXPECT_ANY_THROW(host.apply_push(1, false, 0.3f));  // without rows
}

}  // namespace
}  // namespace fleet::ps
