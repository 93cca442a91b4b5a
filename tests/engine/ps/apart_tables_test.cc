// Tables in async and geo with what sync has: merged rows, schedules, snapshots of changes, shrinks
// on request; and replaced trainers.
#include <gmock/gmock.h>

#include "passes/gradients.h"
#include "ps/geo_client.h"
#include "ps/tables/snapshot.h"
#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/tables/some_table.h"

namespace fleet::ps {
namespace {

constexpr char kApartSgd[] = R"({"name": "sgd"})";
constexpr char kApartTable[] = R"({"embedding": {
    "rule": {"name": "adagrad", "learning_rate": 0.3},
    "initializer": {"name": "normal", "deviation": 0.1}}})";
constexpr char kPlainTable[] = R"({"embedding": {
    "rule": {"name": "naive", "learning_rate": 0.3}, "initializer": {"name": "constant"}}})";
constexpr char kTwoSteps[] = R"("gradient_merge": true, "gradient_merge_configs": {"k_steps": 2})";

// mode, more: fields of the strategy.
Job apart_job(const std::string& tables, const std::string& mode, const std::string& more = "") {
  const std::string comma = mode.empty() || more.empty() ? "" : ", ";
  return click_job(kApartSgd, tables, kWideDeep, "{" + mode + comma + more + "}");
}

// A trainer's own rows in geo, otherwise the servers'.
std::vector<float> row_in_use(ClickRun& run, uint64_t id) {
  const auto* geo = dynamic_cast<GeoClient*>(&run.client(0));
  return geo ? geo->rows().row(0, id) : run.row(0, id);
}

class ApartTables : public ::testing::TestWithParam<const char*> {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  TestFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(
    Modes, ApartTables,
    ::testing::Values(R"("a_sync": true, "a_sync_configs": {"max_staleness": 0})",
                      R"("a_sync_configs": {"k_steps": 1})"));

TEST_P(ApartTables, MergedStepsOfOneTrainer_HaveTheBitsOfSync) {
  ClickRun sync(apart_job(kApartTable, "", kTwoSteps), 1, 2);
  ClickRun apart(apart_job(kApartTable, GetParam(), kTwoSteps), 1, 2);
  for (ClickRun* run : {&sync, &apart}) {
    run->rate = [](int64_t step) { return kClickRate / (1.0 + static_cast<double>(step)); };
    run->begin();
    run->train(0, 6);
  }
  int used = 0;
  for (uint64_t id = 0; id < kClickIds; ++id) {
    const std::vector<float> row = row_in_use(apart, id);
    if (row.empty()) continue;
    ++used;
    EXPECT_EQ(row, sync.row(0, id)) << id;
  }
  EXPECT_GE(used, sync.rows(0));
  auto of_sync = sync.trainer(0).saved();  // with the sums, which checkpoints have in sync only
  std::erase_if(of_sync, [](const auto& one) { return one.first.ends_with(kMergedGradient); });
  EXPECT_EQ(apart.trainer(0).saved(), of_sync);
}

TEST_P(ApartTables, ResumeWithinAnUpdate_GoesOnWithItsMergedRows) {
  const Job job = apart_job(kPlainTable, GetParam(), kTwoSteps);
  ClickRun whole(job, 1, 2);
  whole.begin();
  whole.train(0, 3);
  const std::vector<MergedRows> rows = whole.client(0).merged_rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].ids.empty());
  const auto middle = whole.trainer(0).saved();
  whole.save(path("step"));
  ClickRun resumed(job, 1, 1);
  for (const auto& [name, values] : middle) {
    Executor& executor = resumed.trainer(0).executor();
    executor.write(executor.program().find(name), values);
  }
  resumed.begin(3, path("step"));
  resumed.client(0).restore_merged_rows(rows);
  for (ClickRun* run : {&whole, &resumed}) {
    run->train(3, 4);
    run->settle();
  }
  EXPECT_EQ(resumed.rows(0), whole.rows(0));
  for (uint64_t id = 0; id < kClickIds; ++id) {
    const std::vector<float> row = resumed.row(0, id), want = whole.row(0, id);
    for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], want[i], 1e-6) << id;
  }
}

TEST_P(ApartTables, SnapshotOfChanges_ResumesWithItsBase) {
  const Job job = apart_job(kApartTable, GetParam());
  ClickRun run(job, 2, 2, 0, /*table_deltas=*/1);
  run.begin();
  run.train(0, 3);
  run.settle();
  run.save(path("step_1"));
  run.train(3, 4);
  run.settle();
  run.save(path("step_2"));
  EXPECT_EQ(Snapshot(path("step_2/tables")).base_folder(), path("step_1/tables"));
  ClickRun resumed(job, 2, 3);
  resumed.begin(4, path("step_2"));
  EXPECT_EQ(resumed.rows(0), run.rows(0));
  for (uint64_t id = 0; id < kClickIds; ++id) EXPECT_EQ(resumed.row(0, id), run.row(0, id));
}

TEST_P(ApartTables, ShrinkOnRequest_RemovesUnusedRows) {
  ClickRun run(apart_job(kApartTable, GetParam()), 2, 2);
  const auto shrink = [&] {
    run.settle();
    run.each([&](int t) { EXPECT_TRUE(run.client(t).shrink_tables(2)); });
  };
  run.begin();
  run.train(0, 3);
  run.settle();
  const int64_t before = run.rows(0);
  shrink();
  EXPECT_EQ(run.rows(0), before);
  run.train(3, 4);
  shrink();
  EXPECT_LT(run.rows(0), before);
  EXPECT_GT(run.rows(0), 0);
  shrink();
  shrink();
  EXPECT_EQ(run.rows(0), 0);
}

TableHost host_of_rows(ServerMode mode) {
  return TableHost({some_settings("'dim': 1, 'rule': {'name': 'naive', 'learning_rate': 1}, "
                                  "'initializer': {'name': 'constant'}")},
                   0, 1, 2, mode);
}

void push_row(TableHost& host, int trainer, uint64_t id) {
  Message message =
      push_message({.ids = {id}, .shows = {1}, .clicks = {0}, .values = {-1}}, 1, 1, 0);
  host.push(trainer, delivered(message));
}

TEST(RowsOfALostTrainer, PushWithoutItsBlocks_IsForgotten) {
  TableHost host = host_of_rows(ServerMode::kAsync);
  push_row(host, 1, 7);
  host.replace(1);
  EXPECT_ANY_THROW(host.apply_push(1, false, 1));
  push_row(host, 1, 8);
  host.apply_push(1, false, 1);
  EXPECT_EQ(looked_up(host.table(0), {7, 8}), (std::vector<float>{0, 1}));
}

TEST(RowsOfALostTrainer, NextProcessInGeo_ReceivesOnlyLaterChanges) {
  GeoRecorder recorder(2);
  recorder.pushed(std::vector<uint64_t>{3, 5});
  recorder.begin(1);
  recorder.pushed(std::vector<uint64_t>{4});
  EXPECT_EQ(recorder.take(1), std::vector<uint64_t>{4});
  EXPECT_EQ(recorder.take(0), (std::vector<uint64_t>{3, 4, 5}));
}

// It has cut the tables, or is having them written.
TEST(RowsOfALostTrainer, SnapshotOfTrainer0_EndsWithIt) {
  const TestFolder folder;
  for (const bool writes : {false, true}) {
    TableHost host = host_of_rows(ServerMode::kAsync);
    const auto command = [&](const Json& json) {
      return host.command(0, delivered(json_message(MessageType::kCommand, json)));
    };
    EXPECT_EQ(command({{"command", "cut"}, {"cuts", 1}}).size(), 1u);
    if (writes) command({{"command", "write"}, {"folder", folder / "lost"}});
    host.replace(0);
    RowAnswers answers = command({{"command", "cut"}, {"cuts", 1}});
    while (host.works()) std::ranges::move(host.poll(), std::back_inserter(answers));
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_NO_THROW(throw_if_failed(json_of(delivered(answers[0].message))));
    EXPECT_EQ(command({{"command", "drop"}}).size(), 1u);
  }
}

}  // namespace
}  // namespace fleet::ps
