// fleetrun table, started as a user would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ps/tables/snapshot.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/engine/ps/tables/some_table.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class TableCommand : public ::testing::Test {
 protected:
  TableCommand() {
    std::vector<Json> parts;
    for (const char* name : {"users", "items"}) {
      ps::SparseTable table(ps::some_settings(
          "'dim': 2, 'initializer': {'name': 'constant', 'value': 0.5}", 1, name));
      ps::pulled(table, ps::first_ids(name == std::string("users") ? 3 : 200));
      parts.push_back(ps::TableCut(table).write(folder_.path() + "/s"));
    }
    ps::finish_snapshot(folder_.path() + "/s", parts);
  }
  std::string run(std::vector<std::string> words, int code = 0) {
    words.insert(words.begin(), "table");
    Fleetrun fleetrun(folder_, "run" + std::to_string(++runs_), words);
    EXPECT_EQ(fleetrun.wait(), code) << fleetrun.output();
    return fleetrun.output();
  }
  JobFolder folder_;
  int runs_ = 0;
};

TEST_F(TableCommand, WithoutOptions_CountsTheRowsOfEachTable) {
  EXPECT_THAT(run({"s"}), AllOf(ContainsRegex("users +3 +0 +2"), ContainsRegex("items +200 +0")));
  EXPECT_THAT(run({"s", "--table=users", "--check"}),
              AllOf(ContainsRegex("users +3"), HasSubstr("checksums"), Not(HasSubstr("items"))));
}

TEST_F(TableCommand, Ids_AreShownAndUnknownOnesNamed) {
  EXPECT_THAT(run({"s", "--table", "users", "--id", "2"}), HasSubstr("id 2: "));
  EXPECT_THAT(run({"s", "--table", "users", "--id=2", "--id=77"}, 2),
              AllOf(HasSubstr("id 2: "), HasSubstr("id 77")));
  EXPECT_THAT(run({"s", "--table", "users", "--id", "x"}, 2), HasSubstr("'x'"));
  EXPECT_THAT(run({"s", "--id", "2"}, 2), HasSubstr("items, users"));
}

TEST_F(TableCommand, Export_WritesTextOrArrays) {
  run({"s", "--table", "users", "-o", "x.txt"});
  EXPECT_THAT(folder_.read("x.txt"), HasSubstr("1\t0.5 0.5\n"));
  EXPECT_THAT(run({"s", "--table", "items", "-o", "x.npy"}), HasSubstr("200 rows"));
  EXPECT_THAT(folder_.read("x.npy"), HasSubstr("(200, 2)"));
  EXPECT_THAT(folder_.read("x.ids.npy"), HasSubstr("(200,)"));
  EXPECT_THAT(run({"s", "--table", "users", "-o", "-", "--format=npy"}, 2), HasSubstr("--format"));
}

TEST_F(TableCommand, Checkpoint_StandsForItsTables) {
  std::filesystem::create_directory(folder_.path() + "/step_8");
  std::filesystem::rename(folder_.path() + "/s", folder_.path() + "/step_8/tables");
  EXPECT_THAT(run({"step_8"}), ContainsRegex("users +3 +0 +2"));
  EXPECT_THAT(run({"."}, 2), HasSubstr("manifest"));
}

TEST_F(TableCommand, ExportToAMissingFolder_IsRefused) {
  EXPECT_THAT(run({"s", "--table", "users", "-o", "missing/x.npy"}, 2), HasSubstr("missing"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/missing"));
}

TEST_F(TableCommand, DamagedOrMissingSnapshot_IsNamedWithExitCode2) {
  EXPECT_THAT(run({"none"}, 2), HasSubstr("none"));
  EXPECT_THAT(run({}, 2), HasSubstr("DIR"));
  EXPECT_THAT(run({"s", "--table", "user"}, 2), HasSubstr("'users'"));
  const std::string file = "s/users/shards-100-124.rows";
  std::filesystem::resize_file(folder_.path() + "/" + file, 100);
  EXPECT_THAT(run({"s"}, 2), HasSubstr(file));
}

}  // namespace
}  // namespace fleet
