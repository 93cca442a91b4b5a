// Updates of tables that follow the schedule of the job, or end several steps (gradient_merge).
#include <gmock/gmock.h>

#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kNaiveTable[] = R"({"embedding": {
    "rule": {"name": "naive", "learning_rate": 0.3}, "initializer": {"name": "constant"}}})";
constexpr char kSgdRule[] = R"({"name": "sgd"})";
constexpr char kPlain[] = "{}";
constexpr char kMerged[] = R"({"gradient_merge": true, "gradient_merge_configs": {"k_steps": 2}})";

Job job_of(const std::string& tables, const std::string& strategy) {
  return click_job(kSgdRule, tables, kWideDeep, strategy);
}

// Whether a run with tables has the values of one without.
void expect_the_rows_of(ClickRun& dense, ClickRun& sparse) {
  auto expected = dense.saved();
  const std::vector<float> table = expected.at("embedding.weight");
  const int dim = static_cast<int>(table.size()) / kClickIds;
  for (int id = 0; id < kClickIds; ++id) {
    const std::vector<float> row(table.begin() + id * dim, table.begin() + (id + 1) * dim);
    EXPECT_EQ(sparse.row(0, static_cast<uint64_t>(id)), row) << "id " << id;
  }
  std::erase_if(expected, [](const auto& one) { return one.first.starts_with("embedding."); });
  auto values = sparse.saved();
  std::erase_if(values, [](const auto& one) { return one.first.starts_with("embedding."); });
  EXPECT_EQ(values, expected);
}

double decaying(int64_t step) { return kClickRate * (step == 0 ? 0.1 : 1.0 / (1.0 + step)); }

TEST(TableRate, Schedule_HasTheBitsOfADenseEmbedding) {
  ClickRun dense(job_of("", kPlain), 2, 2), sparse(job_of(kNaiveTable, kPlain), 2, 2);
  for (ClickRun* run : {&dense, &sparse}) {
    run->rate = decaying;
    run->begin();
    run->train(0, 4);
  }
  expect_the_rows_of(dense, sparse);
}

TEST(TableRate, ConstantOne_IgnoresTheSchedule) {
  const std::string constant = R"({"embedding": {"initializer": {"name": "constant"}, "rule":
      {"name": "naive", "learning_rate": 0.3, "follow_schedule": false}}})";
  ClickRun decays(job_of(constant, kPlain), 1, 1), follows(job_of(kNaiveTable, kPlain), 1, 1);
  for (ClickRun* run : {&decays, &follows}) {
    run->rate = [](int64_t) { return kClickRate / 2; };
    run->begin();
    run->train(0, 1);
  }
  int changed = 0;
  for (uint64_t id = 0; id < kClickIds; ++id) {
    const std::vector<float> whole = decays.row(0, id), half = follows.row(0, id);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_FLOAT_EQ(whole[i], 2 * half[i]);
      changed += whole[i] != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 0);
}

TEST(TableRate, AtTheBase_IsTheRulesOwn) {
  TableSettings settings = some_settings("'rule': {'name': 'naive', 'learning_rate': 0.07}");
  EXPECT_EQ(settings.rate_at(0.4f), 0.07);  // no base is known
  settings.base_rate = 0.1;
  EXPECT_EQ(settings.rate_at(0.1f), 0.07);
  EXPECT_NEAR(settings.rate_at(0.05f), 0.035, 1e-9);
  EXPECT_EQ(settings.rate_at(0), 0);
}

TEST(TableRate, OtherBase_IsRefusedAtTheStart) {
  TableSettings one = some_settings("'dim': 2"), other = one;
  other.base_rate = 0.5;
  EXPECT_NE(hash_of({one}), hash_of({other}));
}

struct MergedSizes {
  int trainers, servers;
};
class MergedTables : public ::testing::TestWithParam<MergedSizes> {};

TEST_P(MergedTables, GradientMerge_HasTheBitsOfADenseEmbedding) {
  const auto [trainers, servers] = GetParam();
  ClickRun dense(job_of("", kMerged), trainers, servers);
  ClickRun sparse(job_of(kNaiveTable, kMerged), trainers, servers);
  for (ClickRun* run : {&dense, &sparse}) {
    run->begin();
    run->train(0, 4);
  }
  expect_the_rows_of(dense, sparse);
}

INSTANTIATE_TEST_SUITE_P(All, MergedTables,
                         ::testing::Values(MergedSizes{1, 1}, MergedSizes{2, 2}));

TEST(RowsOfMergedSteps, ResumeWithinAnUpdate_HasTheBitsOfOneWithoutABreak) {
  const TestFolder folder;
  const Job job = job_of(kNaiveTable, kMerged);
  ClickRun whole(job, 1, 2);
  whole.begin();
  whole.train(0, 3);
  const auto middle = whole.saved();
  const std::vector<MergedRows> rows = whole.client(0).merged_rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].ids.empty());
  whole.save(folder / "step");
  ClickRun resumed(job, 1, 1);
  for (const auto& [name, values] : middle) {
    Executor& executor = resumed.trainer(0).executor();
    executor.write(executor.program().find(name), values);
  }
  resumed.begin(3, folder / "step");
  resumed.client(0).restore_merged_rows(rows);
  for (ClickRun* run : {&whole, &resumed}) run->train(3, 6);
  for (uint64_t id = 0; id < kClickIds; ++id) EXPECT_EQ(resumed.row(0, id), whole.row(0, id));
  EXPECT_TRUE(whole.client(0).merged_rows()[0].ids.empty());
}

TEST(RowsOfMergedSteps, ShrinkBetweenTwoUpdates_RunsAtTheNext) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"},
      "shrink": {"every_steps": 3, "age": 1}}})";
  ClickRun run(job_of(tables, kMerged), 1, 1);
  run.begin();
  run.train(0, 2);
  EXPECT_GT(run.rows(0), 0);
  run.train(2, 4);  // step 3 was within this update
  EXPECT_EQ(run.rows(0), 0);
}

}  // namespace
}  // namespace fleet::ps
