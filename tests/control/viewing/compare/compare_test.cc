#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/commands.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tests/control/viewing/runs/run_folder_files.h"
#include "tests/errors.h"
#include "tests/table_rows.h"
#include "viewing/compare/comparison.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

RunSummary summary_of(const std::string& metrics, std::optional<double> target = 0.8) {
  const RunFiles run;
  run.write("metrics.jsonl", metrics);
  return read_run_summary(run.path(), target);
}

TEST(RunSummary, CompleteRun_HasItsResults) {
  const RunSummary run =
      summary_of(start_line(100, 0) + train_line(105, 0, "2.5") + test_line(110, 10, "0.7") +
                 train_line(111, 11, "1.5") + test_line(120, 20, "0.85") +
                 train_line(121, 21, "1.0") + test_line(130, 30, "0.82") + summary_line(131, 30));
  EXPECT_EQ(run.loss, 0.4);  // of the evaluation
  EXPECT_EQ(run.headline, 0.82);
  EXPECT_EQ(run.best_headline, 0.85);
  EXPECT_EQ(run.target_seconds, 20);
  EXPECT_EQ(run.target_steps, 20);
  EXPECT_EQ(run.steps, 30);
  EXPECT_EQ(run.speed, 120);
  EXPECT_EQ(run.seconds, 31);
  EXPECT_EQ(run.settings.at("model.name").value, "\"lenet\"");
  EXPECT_EQ(run.seed, "1");
  EXPECT_TRUE(run.complete);
}

TEST(RunSummary, CrashedRun_HasItsLastLine) {
  const RunSummary run =
      summary_of(start_line(100, 0) + train_line(105, 0, "2.5") + train_line(109, 40, "1.25") +
                 R"({"event":"train","time":110,)");
  EXPECT_EQ(run.loss, 1.25);
  EXPECT_EQ(run.steps, 41);
  EXPECT_EQ(run.seconds, 9);
  EXPECT_FALSE(run.complete);
  EXPECT_TRUE(std::isnan(run.target_seconds));
  EXPECT_TRUE(std::isnan(run.best_headline));
}

TEST(RunSummary, RunThatGoesOn_IsNotComplete) {
  EXPECT_FALSE(summary_of(start_line(100, 0) + summary_line(110, 5) + start_line(120, 5)).complete);
}

TEST(RunSummary, LinesOfOtherWriters_AreReadToo) {
  const RunSummary run = summary_of(
      "{\"time\": 5, \"event\": \"train\", \"loss\": 0.25, \"step\": 3}\n"
      "{ \"event\": \"test\", \"acc1\": NaN, \"loss\": 7}\n");
  EXPECT_EQ(run.loss, 7);
  EXPECT_TRUE(std::isnan(run.headline));
  EXPECT_EQ(run.steps, 4);
}

// Lines that lie across the blocks in which the file is read.
TEST(RunSummary, LongFile_IsReadToItsEnd) {
  std::string metrics = start_line(100, 0);
  for (int i = 0; i < 5'000; ++i) {
    metrics += train_line(101 + i, i, "0.5", R"(,"pad":")" + std::string(i % 700, 'x') + "\"");
    if (i % 500 == 0) metrics += test_line(101 + i, i, "0." + std::to_string(1000 + i));
  }
  metrics += R"({"event":"note","text":")" + std::string(1 << 20, 'y') + "\"}\n";
  metrics += test_line(9'000, 5'000, "0.9");
  const RunSummary run = summary_of(metrics, 0.3);
  EXPECT_EQ(run.headline, 0.9);
  EXPECT_EQ(run.target_steps, 2'000);  // 0.3000
  EXPECT_EQ(run.steps, 5'000);
}

TEST(Spread, Values_HaveMeanAndDeviation) {
  EXPECT_EQ(spread_of({1, 2, 3}).mean, 2);
  EXPECT_EQ(spread_of({1, 2, 3}).deviation, 1);
  EXPECT_EQ(spread_of({1, NAN, INFINITY}).count, 1);
  EXPECT_EQ(spread_of({5}).deviation, 0);
  EXPECT_TRUE(std::isnan(spread_of({NAN}).mean));
}

struct Compare : ::testing::Test {
  // Three runs with one seed each, and another setting.
  Compare() {
    add("a-1", "0.1", "1", "0.80");
    add("a-2", "0.1", "2", "0.82");
    add("a-3", "0.1", "3", "0.84");
    add("b", "0.2", "1", "0.9");
  }
  void add(const std::string& name, const std::string& rate, const std::string& seed,
           const std::string& acc1) {
    files.write(name + "/metrics.jsonl",
                start_line(100, 0) + test_line(110, 10, acc1) + summary_line(111, 10));
    files.write(name + "/config.txt", "learning_rate.base = " + rate +
                                          "  (job.json)\ntrain.seed = " + seed +
                                          "  (--set)\ntrain.output = \"" + name +
                                          "\"  (--set)\ntrain.epochs = 3  (default)\n");
  }
  std::string printed(std::vector<std::string> arguments) const {
    for (std::string& word : arguments) {
      if (!word.starts_with("-")) word = files.path() + "/" + word;
    }
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(run_command(*find_command("compare"), arguments), 0);
    return ::testing::internal::GetCapturedStdout();
  }
  nlohmann::json json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--format=json");
    return nlohmann::json::parse(printed(arguments));
  }
  const RunFiles files;
};

TEST_F(Compare, RunsThatDifferInTheirSeed_AreAGroup) {
  const auto all = json({"a-1", "b", "a-2", "a-3", "--target=0.83"});
  EXPECT_THAT(all["differing"], ElementsAre("learning_rate.base"));
  ASSERT_THAT(all["groups"], SizeIs(2));
  const auto& group = all["groups"][0];
  EXPECT_EQ(group["settings"]["learning_rate.base"], 0.1);
  EXPECT_THAT(group["runs"], SizeIs(3));
  EXPECT_NEAR(group["acc1"]["mean"], 0.82, 1e-12);
  EXPECT_NEAR(group["acc1"]["deviation"], 0.02, 1e-12);
  EXPECT_EQ(group["target_seconds"]["runs"], 1);
  EXPECT_EQ(group["target_seconds"]["mean"], 10);
  EXPECT_TRUE(group["runs"][0]["target_steps"].is_null());
  EXPECT_EQ(all["groups"][1]["acc1"]["mean"], 0.9);
}

// The task's metrics are recorded at the start of a run.
TEST_F(Compare, TextRuns_HaveTheirOwnColumns) {
  const auto add_text = [&](const std::string& name, const std::string& perplexity) {
    files.write(name + "/metrics.jsonl",
                start_line(100, 0,
                           R"(,"metrics":["loss","perplexity"],"headline":"perplexity",)"
                           R"("larger_is_better":false,"unit":"tokens")") +
                    R"({"event":"test","time":110,"step":5,"tokens":9,"loss":2.5,"perplexity":30})"
                    "\n"
                    R"({"event":"test","time":120,"step":9,"tokens":9,"loss":3.5,"perplexity":)" +
                    perplexity + "}\n" + summary_line(121, 10));
    files.write(name + "/config.txt", "task = \"causal_lm\"  (job.json)\n");
  };
  add_text("text", "40");
  const auto group = json({"text", "--target=30"})["groups"][0];
  EXPECT_EQ(group["perplexity"]["mean"], 40);
  EXPECT_EQ(group["best_perplexity"]["mean"], 30);
  EXPECT_EQ(group["target_steps"]["mean"], 5);
  EXPECT_FALSE(group.contains("acc1"));
  const std::string alone = printed({"text"});
  auto rows = table_rows(alone.substr(0, alone.find("\n\n") + 1));
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0]["PERPLEXITY"], "40");
  EXPECT_EQ(rows[0]["BEST"], "30");
  EXPECT_FALSE(rows[0].contains("ACC1"));
  const auto both = json({"text", "a-1"})["groups"];
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_EQ(both[1]["acc1"]["mean"], 0.8);
  EXPECT_FALSE(both[1].contains("perplexity"));
}

TEST_F(Compare, FolderOfRuns_StandsForThem) { EXPECT_THAT(json({""})["groups"], SizeIs(2)); }

// As in output: jobs, each with runs, a link to the newest, and TensorBoard's files.
TEST_F(Compare, FolderOfJobs_StandsForTheirRuns) {
  add("output/net/run-001", "0.1", "1", "0.8");
  add("output/net/run-002", "0.1", "2", "0.8");
  add("output/other/run-001", "0.1", "3", "0.8");
  std::filesystem::create_directory_symlink("run-002", files.path() + "/output/net/latest");
  std::filesystem::create_directories(files.path() + "/output/net/tensorboard/run-001");
  const auto all = json({"output"});
  ASSERT_THAT(all["groups"], SizeIs(1));
  EXPECT_THAT(all["groups"][0]["runs"], SizeIs(3));
}

TEST_F(Compare, Table_HasNoLineOver80Columns) {
  for (int i = 0; i < 30; ++i) {
    add("long-" + std::string(60, 'n') + std::to_string(i), "0.0" + std::to_string(i + 1), "1",
        "0.8");
    files.write("long-" + std::string(60, 'n') + std::to_string(i) + "/config.txt",
                "a.rather.long.key.of.a.model = \"" + std::string(100, 'v') + std::to_string(i) +
                    "\"  (x)\nb.another.long.key.of.a.model = " + std::to_string(i) +
                    "  (x)\nc.key = \x1b[31m  (x)\nd.key = 1  (x)\n");
  }
  const std::string text = printed({"", "--target=0.83"});
  for (const std::string& line : split(text, '\n')) EXPECT_LE(columns_of_text(line), 80u) << line;
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(Compare, Table_ShowsMeanAndSpread) {
  const std::string text = printed({"a-1", "a-2", "a-3", "b"});
  auto rows = table_rows(text.substr(0, text.find("\n\n") + 1));
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0]["base"], "0.1");
  EXPECT_EQ(rows[0]["RUNS"], "3");
  EXPECT_EQ(rows[0]["ACC1"], "0.820 \u00b1 0.020");
  EXPECT_EQ(rows[1]["ACC1"], "0.9");
  EXPECT_THAT(split(text, '\n'), Contains("1: a-1, a-2, a-3; seeds 1, 2, 3"));
}

// It was "1.172e+04".
TEST_F(Compare, LargeNumbers_HaveAllTheirDigits) {
  files.write("fast/metrics.jsonl",
              start_line(100, 0) + test_line(110, 10, "0.0123456") +
                  R"({"event":"summary","time":111,"speed":11720.4,"steps":123456})" + "\n");
  auto rows = table_rows(printed({"fast"}));
  ASSERT_GE(rows.size(), 1u);
  EXPECT_EQ(rows[0]["SPEED"], "11720");
  EXPECT_EQ(rows[0]["STEPS"], "123456");
  EXPECT_EQ(rows[0]["ACC1"], "0.01235");
}

TEST_F(Compare, Texts_AreShownWithoutQuotes) {
  files.write("b/config.txt", "optimizer.name = \"lars\"  (--set)\ntrain.seed = 1  (default)\n");
  auto rows = table_rows(printed({"a-1", "b"}));
  ASSERT_GE(rows.size(), 2u);
  EXPECT_EQ(rows[0]["name"], "-");
  EXPECT_EQ(rows[1]["name"], "lars");
}

TEST_F(Compare, WrongArguments_AreRefused) {
  const auto error = [&](const std::vector<std::string>& arguments) {
    return thrown_by([&] { run_command(*find_command("compare"), arguments); });
  };
  EXPECT_THAT(error({files.path() + "/a-1", "/nowhere"}), IsUsageError("/nowhere"));
  EXPECT_THAT(error({files.path(), "--target=90"}), IsUsageError("--target 90"));
  EXPECT_THAT(error({files.path(), "--target=x"}), IsUsageError("--target x"));
  EXPECT_THAT(error({}), IsUsageError());
}

}  // namespace
}  // namespace fleet
