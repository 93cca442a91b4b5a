// Training with tables on servers: the bits of dense parameters with the same rule.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kTableSgd[] = R"({"name": "sgd"})";
constexpr char kNaive[] = R"({"embedding": {"rule": {"name": "naive", "learning_rate": 0.3},
                                            "initializer": {"name": "constant"}}})";
constexpr char kAdagrad[] = R"({"name": "adagrad"})";
constexpr char kDenseAdagrad[] = R"({"embedding": {
    "rule": {"name": "dense_adagrad", "learning_rate": 0.3}, "initializer": {"name": "constant"}}})";
constexpr int kTableSteps = 4;

// Trains the job with tables and without, and compares all values.
void expect_the_same(const std::string& optimizer, const std::string& tables, int trainers,
                     int servers) {
  ClickRun dense(click_job(optimizer, ""), trainers, servers);
  ClickRun sparse(click_job(optimizer, tables), trainers, servers);
  for (ClickRun* run : {&dense, &sparse}) {
    run->begin();
    run->train(0, kTableSteps);
  }
  auto expected = dense.saved();
  const std::vector<float> table = expected.at("embedding.weight");
  const int dim = static_cast<int>(table.size()) / kClickIds;
  int touched = 0;
  for (int id = 0; id < kClickIds; ++id) {
    const std::vector<float> row(table.begin() + id * dim, table.begin() + (id + 1) * dim);
    EXPECT_EQ(sparse.row(0, static_cast<uint64_t>(id)), row) << "id " << id;
    touched += std::ranges::any_of(row, [](float value) { return value != 0; }) ? 1 : 0;
  }
  EXPECT_GT(touched, kClickIds / 3);
  EXPECT_EQ(sparse.rows(0), touched);
  std::erase_if(expected, [](const auto& one) { return one.first.starts_with("embedding."); });
  EXPECT_EQ(sparse.saved(), expected);
}

struct Sizes {
  int trainers, servers;
};
class TableTraining : public ::testing::TestWithParam<Sizes> {};

TEST_P(TableTraining, NaiveRule_HasTheBitsOfADenseEmbedding) {
  expect_the_same(kTableSgd, kNaive, GetParam().trainers, GetParam().servers);
}

TEST_P(TableTraining, DenseAdagrad_HasTheBitsOfADenseEmbedding) {
  expect_the_same(kAdagrad, kDenseAdagrad, GetParam().trainers, GetParam().servers);
}

INSTANTIATE_TEST_SUITE_P(All, TableTraining,
                         ::testing::Values(Sizes{1, 1}, Sizes{1, 2}, Sizes{1, 3}, Sizes{2, 1},
                                           Sizes{2, 2}, Sizes{2, 3}, Sizes{3, 3}));

// All ids have rows of random initial values, which follow from the id.
constexpr char kRandom[] = R"({"embedding": {
    "rule": {"name": "adagrad", "learning_rate": 0.5},
    "initializer": {"name": "normal", "deviation": 0.1}}})";

TEST(TablesOnServers, NumberOfServers_ChangesNothing) {
  ClickRun one(click_job(kTableSgd, kRandom), 2, 1), three(click_job(kTableSgd, kRandom), 2, 3);
  for (ClickRun* run : {&one, &three}) {
    run->begin();
    run->train(0, kTableSteps);
  }
  EXPECT_EQ(one.saved(), three.saved());
  for (uint64_t id = 0; id < kClickIds; ++id) EXPECT_EQ(one.row(0, id), three.row(0, id));
}

TEST(TablesOnServers, RepeatedPushes_AreAppliedOnce) {
  ClickRun once(click_job(kAdagrad, kRandom), 2, 2), repeated(click_job(kAdagrad, kRandom), 2, 2);
  for (const auto& server : repeated.servers().all) server->repeat_pushes();
  for (ClickRun* run : {&once, &repeated}) {
    run->begin();
    run->train(0, kTableSteps);
  }
  EXPECT_EQ(once.saved(), repeated.saved());
  for (uint64_t id = 0; id < kClickIds; ++id) EXPECT_EQ(once.row(0, id), repeated.row(0, id));
}

TEST(TablesOnServers, IdsOf63Bits_NeedNoMemoryOfTheirOwn) {
  constexpr int64_t kFar = INT64_MAX - 1000;
  ClickRun near(click_job(kTableSgd, kNaive), 2, 2), far(click_job(kTableSgd, kNaive), 2, 2, kFar);
  for (ClickRun* run : {&near, &far}) {
    run->begin();
    run->train(0, 2);
  }
  EXPECT_EQ(near.saved(), far.saved());
  EXPECT_EQ(near.row(0, 3), far.row(0, static_cast<uint64_t>(kFar) + 3));
}

TEST(TablesOnServers, SeveralTables_AreSeparate) {
  const Job job = click_job(kTableSgd, R"({"embedding": {"rule": {"name": "naive"}},
                                      "first_order": {"rule": {"name": "dense_adagrad"}}})",
                            R"("name": "deepfm", "dense": false)");
  ClickRun run(job, 2, 2);
  run.begin();
  run.train(0, 2);
  EXPECT_EQ(run.row(0, 1).size(), 5u);
  EXPECT_EQ(run.row(1, 1).size(), 1u);
  EXPECT_EQ(run.rows(0), run.rows(1));
  EXPECT_THAT(run.saved(), ::testing::Not(::testing::Contains(
                               ::testing::Key(::testing::HasSubstr("first_order.weight")))));
}

TEST(TablesOnServers, AdmissionByCount_CountsTheOccurrencesOfAllTrainers) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"},
      "entry": {"kind": "count", "count": 4}}})";
  std::vector<std::map<std::string, std::vector<float>>> ends;
  std::vector<int64_t> rows;
  for (int again = 0; again < 2; ++again) {  // whatever trainer comes first
    ClickRun run(click_job(kTableSgd, tables), 3, 2);
    run.begin();
    run.train(0, 3);
    ends.push_back(run.saved());
    rows.push_back(run.rows(0));
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(rows[0], rows[1]);
  std::map<int64_t, int> counts;
  for (int step = 0; step < 3; ++step) {
    for (int t = 0; t < 3; ++t) {
      for (const int64_t id : ClickBatch(step, t).ids) ++counts[id];
    }
  }
  const auto admitted = std::ranges::count_if(
      counts, [](const auto& one) { return one.first >= 0 && one.second >= 4; });
  EXPECT_EQ(rows[0], admitted);
}

TEST(TablesOnServers, Evaluation_CreatesNoRows) {
  ClickRun run(click_job(kTableSgd, kRandom), 2, 2);
  run.begin();
  run.train(0, 1);
  const int64_t rows = run.rows(0);
  run.each([&](int t) { run.trainer(t).evaluate(run.client(t), ClickBatch(9, t)); });
  EXPECT_EQ(run.rows(0), rows);
  run.train(1, 2);
  EXPECT_GT(run.rows(0), rows);
}

TEST(TablesOnServers, Shrink_RunsAtItsSteps) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"},
      "shrink": {"every_steps": 2, "age": 1}}})";
  ClickRun run(click_job(kTableSgd, tables), 1, 2);
  run.begin();
  run.train(0, 1);
  const int64_t rows = run.rows(0);
  EXPECT_GT(rows, 0);
  run.train(1, 2);
  EXPECT_EQ(run.rows(0), 0);  // every age is 1
}

TEST(TablesOnServers, Scores_CountTheClicksOfTheSamples) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"}, "shrink":
      {"every_steps": 1, "by_score": true, "min_score": 0.5, "show_weight": 0, "decay": 1}}})";
  ClickRun run(click_job(kTableSgd, tables), 2, 2);
  run.begin();
  run.train(0, 1);
  std::set<int64_t> clicked;
  for (int t = 0; t < 2; ++t) {
    const ClickBatch batch(0, t);
    const size_t each = batch.ids.size() / batch.label.size();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (batch.ids[i] >= 0 && batch.label[i / each] == 1) clicked.insert(batch.ids[i]);
    }
  }
  EXPECT_GT(clicked.size(), 3u);
  EXPECT_EQ(run.rows(0), std::ssize(clicked));
}

class SavedTables : public ::testing::Test {
 protected:
  TestFolder folder_;
  std::string path(const std::string& name) const { return folder_ / name; }
};

TEST_F(SavedTables, ResumedTraining_HasTheBitsOfOneWithoutABreak) {
  const Job job = click_job(kTableSgd, kRandom);
  ClickRun whole(job, 2, 2);
  whole.begin();
  whole.train(0, 3);
  const auto middle = whole.saved();
  // The snapshot is one of step 3, although training goes on while it is written.
  whole.save(path("step"), [&] { whole.train(3, 6); });
  for (const int servers : {1, 3}) {
    ClickRun resumed(job, 2, servers);
    for (const auto& [name, values] : middle) {
      Executor& executor = resumed.trainer(0).executor();
      executor.write(executor.program().find(name), values);
    }
    resumed.begin(3, path("step"));
    resumed.train(3, 6);
    EXPECT_EQ(resumed.saved(), whole.saved()) << servers;
    for (uint64_t id = 0; id < kClickIds; ++id) EXPECT_EQ(resumed.row(0, id), whole.row(0, id));
  }
}

TEST_F(SavedTables, ShrinkDuringASave_WaitsForItsEnd) {
  const std::string tables = R"({"embedding": {"rule": {"name": "naive"},
      "shrink": {"every_steps": 3, "age": 1}}})";
  ClickRun run(click_job(kTableSgd, tables), 1, 1);
  run.begin();
  run.train(0, 2);
  const int64_t rows = run.rows(0);
  run.save(path("step"), [&] { run.train(2, 3); });
  EXPECT_EQ(run.rows(0), 0);
  const Snapshot snapshot(path("step/tables"));
  int64_t saved = 0;
  for (int shard = 0; shard < kVirtualShards; ++shard) {
    saved += snapshot.count("embedding", shard).rows;
  }
  EXPECT_EQ(saved, rows);
}

TEST_F(SavedTables, DroppedSave_WritesNothingAndAllowsTheNext) {
  ClickRun run(click_job(kTableSgd, kRandom), 2, 2);
  run.begin();
  run.train(0, 1);
  run.each([&](int t) { run.client(t).cut_tables(); });
  run.client(0).save_tables("");
  run.save(path("step"));
  EXPECT_TRUE(std::filesystem::exists(path("step/tables/manifest.json")));
}

TEST_F(SavedTables, FolderThatCannotBeWritten_FailsTheSaveOnly) {
  ClickRun run(click_job(kTableSgd, kRandom), 2, 1);
  run.begin();
  run.train(0, 1);
  EXPECT_THAT(thrown_by([&] { run.save("/proc/none"); }), IsError(ErrorCode::kIo));
  run.train(1, 2);
}

TEST(TablesOnServers, WhatDoesNotFitTheModel_IsRefusedByName) {
  const auto refused = [](const std::string& tables, const std::string& where) {
    const Error error = thrown_by([&] { ClickTrainer(click_job(kTableSgd, tables), 0, 1, 1); });
    EXPECT_EQ(error.where(), where);
    EXPECT_EQ(exit_code_for(error.code()), 2);
  };
  refused(R"({"embeding": {"dim": 5}})", "tables.embeding");
  refused(R"({"embedding": {"dim": 6}})", "tables.embedding.dim");
  EXPECT_THAT(thrown_by([&] { ClickTrainer(click_job(kTableSgd, kNaive), 0, 1, 0); }),
              IsUsageError("tables"));
}

TEST(TablesOnServers, OtherSettingsOfATable_AreRefused) {
  ClickRun run(click_job(kTableSgd, kNaive), 1, 1);
  const Program& program = run.trainer(0).program();
  InlineServers others(program, 1, 1, PlacementOptions(), false,
                       tables_of(click_job(kTableSgd, kRandom), program));
  const ServedModel model = served_model(program);
  EXPECT_THAT(thrown_by([&] {
                InlineServers mine(program, 1, 1, PlacementOptions(), false,
                                   tables_of(click_job(kTableSgd, kNaive), program));
                mine.all[0] = std::move(others.all[0]);
                mine.client(program, 0);
              }),
              IsUsageError("server 0"));
}

}  // namespace
}  // namespace fleet::ps
