// Evaluation: its data, its steps, and the accuracy of each class.
#include "train/evaluation.h"

#include <set>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "tests/engine/train/trainer_job.h"
#include "train/evaluation_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Overrides = std::vector<std::string>;

class EvaluationTest : public TrainerTest {
 protected:
  std::vector<int64_t> steps_of_tests() const {
    std::vector<int64_t> steps;
    for (const auto& line : events("test")) steps.push_back(line["step"]);
    return steps;
  }
  // 64 images in IDX files, and none to evaluate on.
  Job idx_job(std::vector<std::string> overrides) const {
    const std::string folder = ::testing::TempDir();
    write_file_atomically(
        folder + "/images",
        std::string("\0\0\x08\x03\0\0\0\x40\0\0\0\x08\0\0\0\x08", 16) + std::string(64 * 64, 'x'));
    write_file_atomically(folder + "/labels",
                          std::string("\0\0\x08\x01\0\0\0\x40", 8) + std::string(64, '\1'));
    return job(with({"data.source=idx", "data.root=" + folder, "data.train.images=images",
                     "data.train.labels=labels", "data.test.images="},
                    overrides));
  }
  // What the runs' folders hold, by path, without the results of evaluations.
  static std::map<std::string, std::string> files() {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(".")) {
      const std::string name = entry.path().filename();
      const bool result = name == "evaluations.jsonl" || name == "evaluation_matrix.csv" ||
                          name == "evaluation_only.json";
      if (entry.is_regular_file() && !result) found[entry.path()] = read_file(entry.path());
    }
    return found;
  }
  std::string checkpoint() const { return *latest_checkpoint(output_ + "/checkpoints"); }
};

// The same global batch on one rank and on two.
TEST_F(EvaluationTest, TrainingLoss_IsThatOfAllRanks) {
  run(job({"data.batch_size=32", "train.fetch_every=1"}), 1);
  const auto whole = events("train");
  fs::remove_all(output_);
  run(job({"data.batch_size=16", "train.fetch_every=1"}), 2);
  const auto halves = events("train");
  ASSERT_EQ(whole.size(), halves.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i]["loss"], halves[i]["loss"], 1e-4) << i;
    EXPECT_EQ(whole[i]["acc1"], halves[i]["acc1"]) << i;
  }
}

TEST_F(EvaluationTest, EverySteps_AndAtTheEndsOfEpochs) {
  run(job({"train.evaluate_every_steps=3"}), 1);  // two epochs of four steps
  EXPECT_THAT(steps_of_tests(), ElementsAre(3, 4, 6, 8));
  fs::remove_all(output_);
  run(job({"train.evaluate_every_steps=4", "train.evaluate_every=2"}), 1);
  EXPECT_THAT(steps_of_tests(), ElementsAre(4, 8));
}

TEST_F(EvaluationTest, EveryStepsAlone_IsWhatEarlyStoppingCounts) {
  const Outcome outcome = run(job({"train.evaluate_every=0", "train.evaluate_every_steps=1",
                                   "train.early_stopping={'metric': 'loss', 'patience': 1, "
                                   "'min_delta': 100}"}),
                              1);
  EXPECT_TRUE(outcome.results[0].stopped_early);
  EXPECT_EQ(outcome.results[0].steps, 2);  // within the epoch
}

// The checkpoint of a step is written before the evaluation after that step.
TEST_F(EvaluationTest, EvaluationAfterACheckpoint_IsMadeUpForOnResume) {
  const std::vector<std::string> overrides = {
      "train.evaluate_every=0", "train.evaluate_every_steps=3", "checkpoint.every_steps=3",
      "checkpoint.keep_best=loss", "checkpoint.at_end=false"};
  run(job(with(overrides, {"train.max_steps=3"})), 1);
  ASSERT_EQ(step_of_checkpoint(checkpoint()), 3);
  run(job(with(overrides, {"train.max_steps=4", "checkpoint.resume=auto"})), 1);
  EXPECT_EQ(events("summary").back()["best_step"], 3);
}

// It divided by train.evaluate_every, which is 0 here.
TEST_F(EvaluationTest, EveryStepsAlone_ResumesBetweenEpochs) {
  const std::vector<std::string> overrides = {
      "train.evaluate_every=0", "train.evaluate_every_steps=3", "checkpoint.keep_best=loss"};
  run(job(with(overrides, {"train.epochs=1"})), 1);
  ASSERT_EQ(step_of_checkpoint(checkpoint()), 4);  // after the evaluation of step 3
  run(job(with(overrides, {"checkpoint.resume=auto"})), 1);
  EXPECT_THAT(steps_of_tests(), ElementsAre(3, 6));
}

TEST_F(EvaluationTest, EverySteps_ChangesNoWeight) {
  const Outcome without = run(job({}), 2);
  fs::remove_all(output_);
  const Outcome with = run(job({"train.evaluate_every_steps=1"}), 2);
  EXPECT_EQ(distance(without.weights[0], with.weights[0]), 0);
}

TEST_F(EvaluationTest, Only_GivesWhatTrainingGaveAtItsEnd) {
  run(job({}), 2);
  const nlohmann::json trained = events("test").back();
  for (const std::string& from :
       {std::string("checkpoint.resume=auto"), "checkpoint.resume=" + checkpoint(),
        "checkpoint.weights=" + checkpoint() + "/model.safetensors"}) {
    for (const int world : {1, 2}) {  // any number of ranks
      const Outcome outcome = run(job({"train.evaluate_only=true", from}), world);
      EXPECT_TRUE(outcome.results[0].evaluated);
      const auto evaluated = events("test", "evaluations.jsonl").back();
      EXPECT_EQ(evaluated["acc1"], trained["acc1"]) << from;
      EXPECT_NEAR(evaluated["loss"], trained["loss"], 1e-6) << from;
      EXPECT_EQ(evaluated["samples"], 37);
    }
  }
  EXPECT_EQ(events("test", "evaluations.jsonl").size(), 6u);
  EXPECT_EQ(events("test").back(), trained);
  EXPECT_EQ(events("summary").size(), 1u);
  EXPECT_EQ(step_of_checkpoint(checkpoint()), 4);
  EXPECT_FALSE(fs::exists(output_ + "/checkpoints.1"));
}

TEST_F(EvaluationTest, Only_MakesNoRunAndChangesNone) {
  const fs::path before = fs::current_path();
  const std::string own = std::exchange(output_, "");  // runs below output/net
  fs::create_directories(own);
  fs::current_path(own);
  run(job({"train.name=net", "train.evaluate_classes=true"}), 1);
  const std::string newest = "output/net/run-001/checkpoints/step_00000008";
  fs::copy_file(newest + "/model.safetensors", "w.safetensors");
  const auto trained = files();
  for (const char* from :
       {"checkpoint.weights=w.safetensors", "checkpoint.resume=auto", "checkpoint.resume=no"}) {
    for (const int world : {1, 2}) {
      const Overrides overrides = {"train.name=net", "train.evaluate_only=true", from,
                                   "data.test.samples=20", "train.evaluate_classes=true"};
      EXPECT_TRUE(run(job(overrides), world).results[0].evaluated) << from;
    }
  }
  EXPECT_EQ(files(), trained);
  EXPECT_TRUE(fs::equivalent("output/net/latest", "output/net/run-001"));
  output_ = "output/net/run-001";
  const auto lines = events("test", "evaluations.jsonl");
  EXPECT_EQ(lines.size(), 4u);  // w.safetensors belongs to no run
  EXPECT_EQ(lines.back()["weights"], newest);
  EXPECT_EQ(lines.back()["step"], 8);
  fs::current_path(before);
  output_ = own;
}

// A job that starts from other weights with a new head, and has no checkpoint of its own.
TEST_F(EvaluationTest, Only_OfANetworkWithARandomHead_IsRefused) {
  run(job({"model.num_classes=3"}), 1);
  const std::string other = output_ + ".safetensors";
  fs::copy_file(checkpoint() + "/model.safetensors", other);
  fs::remove_all(output_);
  for (const char* resume : {"checkpoint.resume=auto", "checkpoint.resume=no"}) {
    EXPECT_THAT(refusal(job({"train.evaluate_only=true", resume, "checkpoint.weights=" + other,
                             "checkpoint.weights_skip=['fc2.*']"})),
                IsUsageError(other));
  }
  fs::remove(other);
}

TEST_F(EvaluationTest, Only_TakesTheAverageWhateverTheJobSays) {
  run(job({"train.ema.decay=0.5"}), 1);
  const nlohmann::json trained = events("test").back();
  for (const char* decay : {"train.ema.decay=0.5", "train.ema.decay=0"}) {
    run(job({"train.evaluate_only=true", decay}), 1);
    EXPECT_NEAR(events("test", "evaluations.jsonl").back()["loss"], trained["loss"], 1e-6);
  }
}

// The states of the optimizer and of each rank do not matter.
TEST_F(EvaluationTest, Only_TakesCheckpointsOfOtherStrategies) {
  for (const Overrides& strategy :
       {Overrides{"strategy.dgc=true", "strategy.dgc_configs.rampup_begin_step=1"},
        Overrides{"strategy.sharding=true", "strategy.sharding_configs.stage=3"},
        Overrides{"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=2"}}) {
    fs::remove_all(output_);
    run(job(strategy), 2);
    const nlohmann::json trained = events("test").back();
    run(job({"train.evaluate_only=true"}), 1);
    run(job(with(strategy, {"train.evaluate_only=true"})), 2);
    for (const auto& line : events("test", "evaluations.jsonl")) {
      EXPECT_NEAR(line["loss"], trained["loss"], 1e-5) << strategy[0];
      EXPECT_EQ(line["step"], trained["step"]);
    }
    EXPECT_EQ(events("test", "evaluations.jsonl").size(), 2u);
  }
}

TEST_F(EvaluationTest, Only_WithoutWeights_IsRefused) {
  EXPECT_THAT(refusal(job({"train.evaluate_only=true"})), IsUsageError("train.evaluate_only"));
}

TEST_F(EvaluationTest, Only_WithoutTestData_IsRefused) {
  run(idx_job({"train.epochs=1"}), 1);
  EXPECT_THAT(refusal(idx_job({"train.evaluate_only=true",
                               "checkpoint.weights=" + checkpoint() + "/model.safetensors"})),
              IsUsageError("train.evaluate_only"));
}

TEST_F(EvaluationTest, ByClass_AddsUpToTheWhole) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    run(job({"train.evaluate_classes=true"}), world);
    const nlohmann::json line = events("test").back();
    ASSERT_EQ(line["class_samples"].size(), 4u);
    double samples = 0, hits = 0;
    for (size_t i = 0; i < 4; ++i) {
      const double count = line["class_samples"][i];
      samples += count;
      if (count > 0) hits += count * line["class_acc1"][i].get<double>();
    }
    EXPECT_EQ(samples, 37);
    EXPECT_NEAR(hits / samples, line["acc1"], 1e-6);
    std::istringstream csv(read_file(output_ + "/confusion_matrix.csv"));
    std::string first;
    std::getline(csv, first);
    EXPECT_EQ(first, "class,0,1,2,3");
  }
}

// Any metric of the task may be followed; evaluations then give it.
TEST_F(EvaluationTest, FollowedMetric_IsEvaluated) {
  const Job followed = job({"checkpoint.keep_best=ece", "train.early_stopping=macro_recall",
                            "train.metrics=['auroc','kappa','acc2']"});
  EXPECT_THAT(followed.train.texts("metrics"),
              ElementsAre("auroc", "kappa", "acc2", "ece", "macro_recall"));
  std::vector<nlohmann::json> lines;
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    run(followed, world);
    lines.push_back(events("test").back());
    const nlohmann::json summary = events("summary").back();
    EXPECT_EQ(summary["best_metric"], "ece");
    double least = HUGE_VAL;
    for (const auto& line : events("test")) least = std::min(least, line["ece"].get<double>());
    EXPECT_EQ(summary["best"], least) << "a lower calibration error is better";
  }
  for (const char* name : {"auroc", "kappa", "acc2", "ece", "macro_recall"}) {
    EXPECT_TRUE(lines[0][name].is_number()) << name;
  }
  EXPECT_EQ(events("start").back()["headline"], "acc1");
}

TEST_F(EvaluationTest, UnknownMetric_IsRefusedWithNearNames) {
  const Error error = refusal(job({"checkpoint.keep_best=macro_f2"}));
  EXPECT_THAT(error, IsUsageError("checkpoint.keep_best.metric"));
  EXPECT_THAT(error.next(), AllOf(HasSubstr("did you mean 'macro_f1'?"), HasSubstr("auroc"),
                                  Not(HasSubstr("pearson"))));
}

// The same samples and pictures on any number of ranks.
TEST_F(EvaluationTest, ByClass_WritesAFileForReports) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    run(job({"train.evaluate_classes=true"}), world);
    const auto file = nlohmann::json::parse(read_file(output_ + "/evaluation.json"));
    EXPECT_EQ(file["step"], events("test").back()["step"]);
    EXPECT_EQ(file["samples"], 37);
    EXPECT_EQ(file["support"], events("test").back()["class_samples"]);
    EXPECT_EQ(file["confusion"]["counts"].size(), 16U);
    EXPECT_EQ(file["calibration"].size(), 45U);
    ASSERT_EQ(file["worst"].size(), 16U);
    std::set<std::string> names;
    for (const auto& sample : file["worst"]) {
      names.insert(sample["name"]);
      // A JPEG file begins with FF D8 FF.
      EXPECT_TRUE(sample["jpeg"].get<std::string>().starts_with("/9j/")) << sample;
    }
    EXPECT_EQ(names.size(), 16U) << "each sample once";
  }
}

TEST(SmallClasses, AreNamed) {
  EXPECT_EQ(small_classes_line({10, 12}, {}), "");
  EXPECT_THAT(small_classes_line({10, 9, 0}, {"cat", "dog", "eel"}),
              ::testing::EndsWith(": dog (9), eel (none)"));
}

}  // namespace
}  // namespace fleet
