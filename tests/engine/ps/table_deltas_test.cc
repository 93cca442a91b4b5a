#include "ps/table_deltas.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"
#include "train/safetensors.h"

namespace fleet::ps {
namespace {

namespace fs = std::filesystem;

constexpr char kAdagradTable[] = R"({"embedding": {"rule": {"name": "adagrad"},
    "initializer": {"name": "normal", "deviation": 0.1}}})";

std::vector<Json> parts_of_version(int64_t version, int64_t since) {
  const Json part = {{"name", "t"}, {"version", version}, {"since", since}};
  return {part};
}

class TableDeltasPlan : public ::testing::Test {
 protected:
  std::string step(int number) const { return folder_ / ("step_" + std::to_string(number)); }
  // Saves a checkpoint as a job does; since 0: whole.
  void save(TableDeltas& deltas, int number, int64_t since) {
    fs::create_directories(step(number) + "/tables");
    write_file_atomically(step(number) + "/tables/manifest.json", "{}");
    deltas.written(step(number) + ".part", parts_of_version(number, since));
  }
  TestFolder folder_;
};

TEST_F(TableDeltasPlan, EachDelta_HasTheLastWholeOneAsBase) {
  TableDeltas deltas(2);
  EXPECT_FALSE(deltas.base_for(step(1) + ".part"));
  save(deltas, 1, 0);
  for (const int number : {2, 3}) {
    const auto base = deltas.base_for(step(number) + ".part");
    ASSERT_TRUE(base);
    EXPECT_EQ(base->checkpoint, step(1));
    EXPECT_EQ(base->versions.at("t").get<int64_t>(), 1);
    save(deltas, number, 1);
  }
  EXPECT_FALSE(deltas.base_for(step(4) + ".part"));
}

TEST_F(TableDeltasPlan, None_MakesAllWhole) {
  TableDeltas deltas(0);
  save(deltas, 1, 0);
  EXPECT_FALSE(deltas.base_for(step(2)));
}

TEST_F(TableDeltasPlan, BaseThatIsGoneOrElsewhere_IsNotUsed) {
  TableDeltas deltas(9);
  save(deltas, 1, 0);
  EXPECT_TRUE(deltas.base_for(step(2)));
  EXPECT_FALSE(deltas.base_for(folder_ / "other/step_2"));
  EXPECT_FALSE(deltas.base_for(step(1)));  // the same step, saved again
  fs::remove_all(step(1));
  EXPECT_FALSE(deltas.base_for(step(2)));
}

class DeltaCheckpoints : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  TestFolder folder_;
};

TEST_F(DeltaCheckpoints, Resume_ReadsTheBaseAndTheChanges) {
  const Job job = click_job(R"({"name": "sgd"})", kAdagradTable);
  ClickRun run(job, 2, 2, 0, /*table_deltas=*/2);
  run.begin();
  run.train(0, 2);
  run.save(path("step_1"));
  run.train(2, 3);
  run.save(path("step_2"));
  run.train(3, 4);
  run.save(path("step_3"));
  EXPECT_EQ(Snapshot(path("step_3/tables")).base_folder(), path("step_1/tables"));
  run.save(path("step_4"));
  EXPECT_FALSE(Snapshot(path("step_4/tables")).has_base());
  ClickRun resumed(job, 2, 3);
  resumed.begin(4, path("step_3"));
  EXPECT_EQ(resumed.rows(0), run.rows(0));
  for (uint64_t id = 0; id < kClickIds; ++id) EXPECT_EQ(resumed.row(0, id), run.row(0, id));
}

TEST_F(DeltaCheckpoints, Delta_HasOnlyTheChangedRows) {
  const Job job = click_job(R"({"name": "sgd"})", kAdagradTable);
  ClickRun run(job, 1, 1, 0, /*table_deltas=*/1);
  run.begin();
  run.train(0, 6);
  run.save(path("step_1"));
  run.save(path("step_2"));  // nothing changed
  const auto bytes = [&](const std::string& name) {
    return Snapshot(path(name + "/tables")).table("embedding").bytes;
  };
  EXPECT_LT(bytes("step_2"), bytes("step_1"));
}

TEST_F(DeltaCheckpoints, MissingOrOtherBase_IsDamage) {
  const Job job = click_job(R"({"name": "sgd"})", kAdagradTable);
  ClickRun run(job, 1, 1, 0, /*table_deltas=*/3);
  run.begin();
  run.train(0, 1);
  run.save(path("step_1"));
  run.train(1, 2);
  run.save(path("step_2"));
  ClickRun other(job, 1, 1);
  other.begin();
  other.train(5, 6);
  other.save(path("other"));
  fs::rename(path("step_1"), path("away"));
  EXPECT_THROW(Snapshot(path("step_2/tables")), DamagedFile);
  fs::rename(path("other"), path("step_1"));
  EXPECT_THROW(Snapshot(path("step_2/tables")), DamagedFile);
}

TEST(ShrinkCommand, RowsUnusedInTheLastCalls_AreRemoved) {
  const Job job = click_job(R"({"name": "sgd"})", kAdagradTable);
  ClickRun run(job, 2, 2);
  const auto shrink = [&] {
    run.each([&](int t) { EXPECT_TRUE(run.client(t).shrink_tables(2)); });
  };
  run.begin();
  run.train(0, 3);
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

TEST(ShrinkCommand, WithoutTables_SaysSo) {
  ClickRun run(click_job(R"({"name": "sgd"})", ""), 1, 1);
  run.begin();
  EXPECT_FALSE(run.client(0).shrink_tables(1));
}

}  // namespace
}  // namespace fleet::ps
