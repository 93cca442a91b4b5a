// What the sources of click data in files have in common: broken lines, ids, ranks, predictions.
#include <gmock/gmock.h>

#include <set>

#include "data/click_columns.h"
#include "tests/engine/data/clicks.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using testing::click_of;
using ::testing::EndsWith;
using testing::gzip;
using ::testing::HasSubstr;
using testing::open_data;
using testing::TempFolder;
using testing::with_files;
using testing::write;

// Computed by Python from the formula in docs/reference/click_data.md.
constexpr uint64_t kHash00 = 12035550249420947055u, kHash01 = 627405149472732430u;
constexpr uint64_t kHash25 = 9260688796317239747u, kHashMissing = 4722581856061867462u;

TEST(HashId, KnownValues_HoldOnEveryMachine) {
  EXPECT_EQ(hash_id(0, 0), kHash00);
  EXPECT_EQ(hash_id(0, 1), kHash01);
  EXPECT_EQ(hash_id(25, 0x68fd1e64), kHash25);
  EXPECT_EQ(hash_id(3, UINT64_MAX), kHashMissing);
}

TEST(IdSpace, Hashes_AreTakenModuloItsSize) {
  EXPECT_EQ(IdSpace(1'000'001).hashed(25, 0x68fd1e64), static_cast<int64_t>(kHash25 % 1'000'001));
  EXPECT_EQ(IdSpace(0).hashed(25, 0x68fd1e64), static_cast<int64_t>(kHash25 & INT64_MAX));
  EXPECT_FALSE(IdSpace(10).contains(10));
  EXPECT_TRUE(IdSpace(10).contains(9));
  EXPECT_TRUE(IdSpace(0).contains(INT64_MAX));
  EXPECT_FALSE(IdSpace(0).contains(uint64_t{1} << 63));
}

class ClickFilesTest : public ::testing::Test {
 protected:
  std::unique_ptr<Source> open(const std::string& files, const std::string& more = "") const {
    const std::string root =
        R"("root": ")" + folder_.path() + R"(", "cache_folder": ")" + (folder_ / "cache") + "\"";
    return open_data("libsvm", with_files(files, root + (more.empty() ? "" : ", " + more)));
  }
  Settings settings(const std::string& files, const std::string& more) const {
    return testing::settings_of("libsvm",
                                with_files(files, R"("root": ")" + folder_.path() + "\", " + more));
  }
  void write_lines(const std::string& name, int count) const {
    std::string text;
    for (int i = 0; i < count; ++i) text += "1 " + std::to_string(i + 1) + "\n";
    write(folder_ / name, text);
  }

  const TempFolder folder_;
};

TEST_F(ClickFilesTest, BrokenLines_AreSkippedUpToTheFraction) {
  write(folder_ / "a", "1 1\n1 2\n1 x\n0 3\n");
  const auto source = open("a", R"("max_broken_lines": 0.25)");
  EXPECT_EQ(source->size(), 3);
  EXPECT_EQ(click_of(*source, 2).ids[0], 3);
  EXPECT_EQ(source->name(2), folder_ / "a:4");
  EXPECT_THAT(thrown_by([&] { open("a", R"("max_broken_lines": 0.24)"); }),
              IsUsageError(folder_ / "a:3"));
  EXPECT_THAT(thrown_by([&] { open("a"); }), IsUsageError(folder_ / "a:3"));
}

TEST_F(ClickFilesTest, DefaultFraction_IsOneInAThousand) {
  write_lines("a", 1998);
  write(folder_ / "b", "no\nno\n");
  EXPECT_EQ(open(R"(a", "b)")->size(), 1998);
}

TEST_F(ClickFilesTest, OnDamagedFail_EndsAtTheFirstBrokenLine) {
  write(folder_ / "a", "1 1\n1 2\n1 x\n0 y\n");
  EXPECT_THAT(thrown_by([&] { open("a", R"("on_damaged": "fail", "max_broken_lines": 1)"); }),
              IsUsageError(folder_ / "a:3"));
}

TEST_F(ClickFilesTest, HeaderLine_IsNamedAsSuchOrLeftOut) {
  write(folder_ / "a", "label features\n1 2\n");
  const Error error = thrown_by([&] { open("a"); });
  EXPECT_EQ(error.where(), folder_ / "a:1");
  EXPECT_THAT(error.next(), HasSubstr("data.header"));
  EXPECT_EQ(open("a", R"("header": true)")->size(), 1);
}

TEST_F(ClickFilesTest, BytesOutsideOfText_AreBrokenAndShownEscaped) {
  write(folder_ / "a", "1 \xff\x1b[31m\n1 1\n");
  const Error error = thrown_by([&] { open("a"); });
  EXPECT_EQ(error.where(), folder_ / "a:1");
  EXPECT_THAT(error.failure(), HasSubstr("\\x1b"));
  EXPECT_EQ(open("a", R"("max_broken_lines": 0.5)")->size(), 1);
}

TEST_F(ClickFilesTest, NoRows_IsRefusedAtTheFile) {
  write(folder_ / "a", "");
  EXPECT_THAT(thrown_by([&] { open("a"); }), IsUsageError(folder_ / "a"));
  EXPECT_THAT(thrown_by([&] { open("none"); }), IsUsageError("data.train.file"));
}

TEST_F(ClickFilesTest, Check_NeedsNoData) {
  write_lines("a", 3);
  const DataOutline outline = check_data_settings(settings("a", R"("max_len": 4)"), {});
  ASSERT_EQ(outline.columns.size(), 2u);
  EXPECT_EQ(outline.columns[1].shape, Shape({1, 4}));
  EXPECT_FALSE(outline.has_test);
  EXPECT_THAT(thrown_by([&] { check_data_settings(settings("b", R"("max_len": 4)"), {}); }),
              IsUsageError("data.train.file"));
  EXPECT_THAT(thrown_by([&] { check_data_settings(settings("a", R"("pixels": "uint8")"), {}); }),
              IsUsageError("data.pixels"));
}

TEST_F(ClickFilesTest, LineThatChangesLater_EndsTheEpoch) {
  write(folder_ / "a", "1 1\n1 2\n");
  const auto source = open("a");
  write(folder_ / "a", "1 1\n1 x\n");
  EXPECT_EQ(click_of(*source, 0).ids[0], 1);
  EXPECT_THAT(thrown_by([&] { click_of(*source, 1); }), IsUsageError(folder_ / "a:2"));
}

// The first ids of all samples of an epoch, by step and rank.
std::vector<std::vector<int64_t>> steps_of(const Settings& data, int ranks) {
  std::vector<std::vector<int64_t>> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto pipeline = make_pipeline(data, true, {.rank = rank, .ranks = ranks, .seed = 5});
    pipeline->start_epoch(1);
    size_t step = 0;
    for (const Batch* batch = nullptr; (batch = pipeline->next()); ++step) {
      if (steps.size() == step) steps.emplace_back();
      const auto* ids = reinterpret_cast<const int64_t*>(batch->column("ids").data());
      for (int64_t i = 0; i < batch->size; ++i) steps[step].push_back(ids[i * 2]);
    }
    EXPECT_EQ(step, steps.size());
  }
  return steps;
}

TEST_F(ClickFilesTest, UnequalFiles_GiveAllRanksTheSameSteps) {
  write_lines("a", 100);
  write(folder_ / "b", gzip("1 200\n"));
  write(folder_ / "c", "1 300\n0 301");
  const std::string keys = R"("max_len": 2, "threads": 2, "cache_folder": ")" +
                           (folder_ / "cache") + R"(", "batch_size": )";
  const std::string files = R"(a", "b", "c)";
  const auto one = steps_of(settings(files, keys + "8"), 1);
  const auto two = steps_of(settings(files, keys + "4"), 2);
  const auto four = steps_of(settings(files, keys + "2"), 4);
  ASSERT_EQ(one.size(), 13u);
  EXPECT_EQ(one, two);
  EXPECT_EQ(one, four);
  std::set<int64_t> all;
  for (const auto& step : one) all.insert(step.begin(), step.end());
  EXPECT_EQ(all.size(), 103u);
  EXPECT_TRUE(all.contains(301));
  const std::vector<int64_t> first = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_NE(one[0], first);  // shuffled over all files
}

TEST_F(ClickFilesTest, ValidationSplit_DividesTheRows) {
  write_lines("a", 100);
  const Settings data = settings("a", R"("validation_split": 0.2)");
  EXPECT_EQ(make_pipeline(data, true, {})->samples(), 80);
  EXPECT_EQ(make_pipeline(data, false, {})->samples(), 20);
}

TEST_F(ClickFilesTest, Predictions_NameRowsAndBrokenLines) {
  write(folder_ / "a", "no:no\n1:1\n\n0 2:1\nx y\n3\n");
  const Settings data = settings("unused", R"("max_len": 2)");
  const UnlabelledSamples samples = open_unlabelled(data, {folder_ / "a"}, {.rank = 1});
  ASSERT_EQ(samples.names.size(), 5u);
  EXPECT_EQ(samples.names[3], folder_ / "a:5");
  EXPECT_NE(samples.failures[0], "");
  EXPECT_NE(samples.failures[3], "");
  EXPECT_EQ(samples.failures[2], "");
  ASSERT_EQ(samples.groups.size(), 1u);
  EXPECT_THAT(samples.groups[0].samples, ::testing::ElementsAre(1, 2, 4));
  const Source& source = *samples.groups[0].source;
  ASSERT_EQ(source.columns().size(), 1u);
  EXPECT_EQ(source.columns()[0].name, "ids");
  EXPECT_EQ(click_of(source, 1).ids[0], 2);
}

}  // namespace
}  // namespace fleet::data
