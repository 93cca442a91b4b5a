#include "train/trainer.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "exec/backend.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(TrainerTest, OneTwoAndFourRanks_Agree) {
  const Outcome one = run(job({"data.batch_size=16"}), 1);
  const Outcome two = run(job({"data.batch_size=8"}), 2);
  const Outcome four = run(job({"data.batch_size=4"}), 4);
  EXPECT_EQ(one.results[0].steps, 8);
  EXPECT_EQ(four.results[3].steps, 8);
  EXPECT_EQ(distance(two.weights[0], two.weights[1]), 0);
  EXPECT_LE(distance(one.weights[0], two.weights[0]), 1e-5);
  EXPECT_LE(distance(one.weights[0], four.weights[2]), 1e-5);
  for (const Outcome* outcome : {&one, &two, &four}) {
    EXPECT_EQ(outcome->results[0].evaluation.items(), 37);  // each test sample exactly once
    EXPECT_NEAR(outcome->results[0].evaluation.loss(), one.results[0].evaluation.loss(), 1e-3);
  }
}

// 64 x 32 + 32 + 32 x 4 + 4 parameters in one message; in the fetched steps, sums of the metrics
// too.
TEST_F(TrainerTest, Traffic_IsCountedByTheTransport) {
  const std::vector<std::string> base = {"data.batch_size=4", "train.fetch_every=4"};
  run(job(base), 2);
  constexpr int64_t kGradients = 2212 * 4;
  int64_t total = 0;
  for (const auto& line : events("train")) {
    const int64_t sent = line["sent_bytes"];
    EXPECT_GE(sent, kGradients);
    EXPECT_LT(sent, kGradients + 2048);
    EXPECT_EQ(line["received_bytes"], sent);
    EXPECT_EQ(line["sent_bytes_between_hosts"], 0);
    total += 4 * sent;
    EXPECT_EQ(line["sent_bytes_total"], total);
  }
  const auto summary = events("summary").at(0);
  EXPECT_EQ(summary["sent_bytes"].size(), 2u);
  EXPECT_EQ(summary["sent_bytes"][1], events("train").back()["sent_bytes"]);
}

TEST_F(TrainerTest, TrafficOfOneRank_IsNotWritten) {
  run(job({"train.max_steps=3"}), 1);
  EXPECT_FALSE(events("train").at(0).contains("sent_bytes"));
  EXPECT_FALSE(events("summary").at(0).contains("sent_bytes"));
}

TEST_F(TrainerTest, Metrics_TellHowFullTheReadersQueueIs) {
  run(job({"data.prefetch=3"}), 1);
  const auto lines = events("train");
  ASSERT_FALSE(lines.empty());
  for (const auto& line : lines) {
    EXPECT_EQ(line["reader_queue_capacity"], 3);
    EXPECT_GE(line["reader_queue"], 0);
    EXPECT_LE(line["reader_queue"], 3);
  }
}

TEST_F(TrainerTest, Summary_TellsWhatTheTimeWentTo) {
  run(job({"train.evaluate_every=1", "checkpoint.every_steps=1"}), 1);
  const auto summary = events("summary").at(0);
  double sum = 0;
  for (const char* part : {"start", "training", "evaluation", "saving"}) {
    const double seconds = summary[part + std::string("_seconds")];
    EXPECT_GT(seconds, 0) << part;
    sum += seconds;
  }
  EXPECT_NEAR(sum, summary["seconds"], 1e-6);
  double evaluations = 0;
  for (const auto& line : events("test")) evaluations += static_cast<double>(line["seconds"]);
  EXPECT_GE(summary["evaluation_seconds"], evaluations);
}

TEST_F(TrainerTest, InterruptedAndResumed_IsBitIdentical) {
  const Outcome whole = run(job({"checkpoint.every_steps=1"}), 2);
  for (const char* cut :
       {"1", "2", "3"}) {  // within an epoch (of two steps), at its end, within the next
    fs::remove_all(output_);
    run(job({std::string("train.max_steps=") + cut}), 2);
    const Outcome resumed = run(job({"checkpoint.resume=auto"}), 2);
    EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0) << "cut after " << cut;
    EXPECT_EQ(resumed.results[0].steps, whole.results[0].steps);
  }
}

TEST_F(TrainerTest, StopWishOfOneRank_StopsAllAfterTheSameStepAndSaves) {
  const std::atomic<int> stop{SIGTERM};
  const Outcome outcome = run(job({"train.epochs=50"}), 2, &stop);
  EXPECT_EQ(outcome.results[0].stopped_by, SIGTERM);
  EXPECT_EQ(outcome.results[1].stopped_by, SIGTERM);
  EXPECT_EQ(outcome.results[0].steps, outcome.results[1].steps);
  EXPECT_LE(outcome.results[0].steps, 2);
  EXPECT_TRUE(latest_checkpoint(output_ + "/checkpoints").has_value());
}

TEST_F(TrainerTest, SignalsOfBothRanks_ReachBoth) {
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT}) {
    const std::atomic<int> stop{signal};
    EXPECT_EQ(run(job({"train.epochs=50"}), 2, &stop).results[0].stopped_by, signal);
  }
}

TEST_F(TrainerTest, SaveSignalOfOneRank_SavesOnceAndGoesOn) {
  const std::atomic<int> saves{1};
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    const Outcome outcome =
        run(job({"train.epochs=20", "checkpoint.at_end=false"}), world, nullptr, &saves);
    EXPECT_EQ(outcome.results[0].stopped_by, 0);
    EXPECT_EQ(outcome.results[0].steps, world == 1 ? 80 : 40);
    int count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(output_ + "/checkpoints")) {
      ++count;
    }
    EXPECT_EQ(count, 1);
    const auto saved = latest_checkpoint(output_ + "/checkpoints");
    ASSERT_TRUE(saved.has_value());
    EXPECT_EQ(step_of_checkpoint(*saved), world == 1 ? 0 : 1);
  }
}

TEST_F(TrainerTest, RanksWithAnotherPlan_AreRefusedByName) {
  // Ranks whose strategies differ: rank 1 fuses less.
  const auto messages = start_two(job({"model.hidden=32"}), job({"model.hidden=33"}));
  EXPECT_THAT(messages[0], HasSubstr("rank 1 has another plan than rank 0"));
  EXPECT_NE(messages[1], "");
}

TEST_F(TrainerTest, RanksWithOtherData_AreRefusedByName) {
  for (const std::string& message : start_two(job({}), job({"data.train.samples=63"}))) {
    EXPECT_THAT(message,
                AllOf(HasSubstr("rank 1 differs from rank 0"), HasSubstr("samples is 63")));
  }
}

// Every strategy's ranks stay alike where they say so, bit by bit.
TEST_F(TrainerTest, ParametersOfRanks_AreComparedAsOftenAsTheJobSays) {
  const std::vector<std::string> kOften = {"train.compare_ranks_every=1", "train.epochs=3"};
  for (const auto& strategy : std::vector<std::vector<std::string>>{
           {},
           {"optimizer.clip=global_norm"},
           {"strategy.localsgd=true", "strategy.localsgd_configs={'k_steps': 3, 'begin_step': 1}"},
           {"strategy.build_strategy={'reduce_strategy': 'Reduce'}"},
           {"strategy.gradient_merge=true", "strategy.gradient_merge_configs={'k_steps': 2}"},
           {"strategy.lars=true"},
           {"strategy.dgc=true"}}) {
    const Outcome outcome = run(job(with(kOften, strategy)), 2);
    EXPECT_EQ(outcome.results[0].steps, 6);
  }
}

// Two nodes that share no folder, and a checkpoint on one of them.
TEST_F(TrainerTest, RanksThatResumeFromOtherCheckpoints_AreRefused) {
  run(job({"train.max_steps=1"}), 2);
  const Job here = job({"checkpoint.resume=auto"});
  const std::string output = output_;
  output_ += "/other_disk";
  const Job there = job({"checkpoint.resume=auto"});
  const Job nowhere = job({"checkpoint.resume=" + output_ + "/step_00000001"});
  output_ = output;
  EXPECT_THAT(start_two(here, there),
              ::testing::Each(AllOf(HasSubstr("rank 0 resumed from step 1"),
                                    HasSubstr("rank 1 found no checkpoint"))));
  const auto messages = start_two(here, nowhere);
  EXPECT_THAT(messages[0], HasSubstr("rank 1: could not load the checkpoint"));
  EXPECT_NE(messages[1], "");
}

// A launcher that restarts a job marks its folder.
TrainerOptions start_of_run(bool restarted) { return {.run = "r", .restarted = restarted}; }

TEST_F(TrainerTest, RestartedBeforeItsFirstSave_BeginsAsBefore) {
  const Outcome whole = run(job({"train.max_steps=3"}), 1);
  fs::remove_all(output_);
  run(job({"train.max_steps=2"}), 1);
  const std::string folder = *latest_checkpoint(output_ + "/checkpoints");
  output_ += "/second";
  const Job second = job({"train.max_steps=3", "checkpoint.resume=" + folder});
  HostDevice device;
  { const Trainer killed(second, device, start_of_run(false)); }
  Trainer restarted(second, device, start_of_run(true));
  EXPECT_EQ(restarted.run().steps, 3);
  EXPECT_EQ(distance(weights_of(restarted.session().executor()), whole.weights[0]), 0);
  output_ = fs::path(output_).parent_path();
}

// The checkpoints that the user went back from must not come back at the next start.
TEST_F(TrainerTest, GoingBackToAnEarlierCheckpoint_SetsNewerOnesAside) {
  const std::string root = output_ + "/checkpoints";
  run(job({"checkpoint.every_steps=1", "checkpoint.keep=0"}), 1);
  ASSERT_EQ(step_of_checkpoint(*latest_checkpoint(root)), 8);
  run(job({"checkpoint.resume=" + folder_of_step(root, 2), "train.max_steps=3"}), 1);
  EXPECT_EQ(step_of_checkpoint(*latest_checkpoint(root)), 3);
  EXPECT_TRUE(fs::exists(folder_of_step(root, 8) + ".1"));
}

// Two nodes that share no folder: the second does not see the run's checkpoints.
TEST_F(TrainerTest, RestartedRanksWithoutASharedFolder_DoNotBeginAnew) {
  const std::string output = output_;
  const Job here = job({"train.max_steps=2"});
  output_ += "/other_disk";
  const Job there = job({"train.max_steps=2"});
  output_ = output;
  const auto start = [&](bool restarted) {
    return run_ranks(2, [&](RankThread& rank) {
      TrainerOptions options = options_of(rank);
      options.run = "r";
      options.restarted = restarted;
      HostDevice device;
      Trainer(rank.rank == 0 ? here : there, device, options).run();
    });
  };
  start(false);
  ASSERT_TRUE(latest_checkpoint(output + "/checkpoints"));
  for (const auto& end : start(true)) {
    EXPECT_THAT(end.message, AllOf(HasSubstr("rank 0 resumed from step 2"),
                                   HasSubstr("rank 1 found no checkpoint")));
  }
  EXPECT_TRUE(latest_checkpoint(output + "/checkpoints"));
}

TEST_F(TrainerTest, CheckpointOfAnotherGlobalBatchOrSeed_IsRefused) {
  run(job({"train.max_steps=2"}), 1);
  EXPECT_THROW(run(job({"checkpoint.resume=auto", "data.batch_size=8"}), 1), Error);
  EXPECT_THROW(run(job({"checkpoint.resume=auto", "train.seed=2"}), 1), Error);
}

TEST_F(TrainerTest, TestLine_HasTheEpochThatWasTrainedLast) {
  const auto epoch = [&](const char* steps) {  // of four steps
    fs::remove_all(output_);
    run(job({std::string("train.max_steps=") + steps}), 1);
    return events("test").back()["epoch"];
  };
  EXPECT_EQ(epoch("3"), 0);
  EXPECT_EQ(epoch("4"), 0);
  EXPECT_EQ(epoch("5"), 1);
  EXPECT_EQ(epoch("0"), 1);
}

TEST_F(TrainerTest, MaxStepsAtTheEndOfAnEpoch_CompletesIt) {
  run(job({"train.max_steps=8", "train.epochs=4", "checkpoint.every_epochs=1",
           "checkpoint.at_end=false"}),
      1);
  const auto state =
      nlohmann::json::parse(read_file(output_ + "/checkpoints/step_00000008/state.json"));
  EXPECT_EQ(state["epoch"], 2);
  EXPECT_EQ(state["batch"], 0);
}

// The label of a sample always is among the first 5 of at most 5 classes.
TEST_F(TrainerTest, AccuracyOfFive_IsOfMoreThanFiveClasses) {
  for (const int classes : {2, 4, 5, 6}) {
    std::filesystem::remove_all(output_);
    const std::string model =
        R"({"name": "mlp", "hidden": [8], "num_classes": )" + std::to_string(classes) + "}";
    run(job({"train.max_steps=3"}, model), 1);
    for (const char* kind : {"train", "test"}) {
      std::vector<std::string> accuracies;
      const auto line = events(kind).at(0);
      for (const auto& [key, value] : line.items()) {
        if (key.starts_with("acc")) accuracies.push_back(key);
      }
      const std::vector<std::string> few = {"acc1"}, many = {"acc1", "acc5"};
      EXPECT_EQ(accuracies, classes > 5 ? many : few) << kind << " of " << classes;
    }
    for (const char* metric : {"acc4", "acc5"}) {
      const std::string key = "checkpoint.keep_best";
      const Job kept = job({key + "=" + metric, "train.max_steps=1"}, model);
      if (classes > 5 && metric == std::string("acc5")) continue;
      EXPECT_THAT(refusal(kept), IsUsageError(key + ".metric")) << classes;
    }
    const Job top_three = job({"checkpoint.keep_best=acc3", "train.max_steps=1"}, model);
    if (classes < 4) {
      EXPECT_THAT(refusal(top_three), IsUsageError("train.metrics"));
    }
  }
}

TEST_F(TrainerTest, StartLine_NamesDeviceAndPrecision) {
  run(job({"train.max_steps=1"}), 1);
  EXPECT_EQ(events("start").at(0)["device"], "cpu");
  EXPECT_EQ(events("start").at(0)["precision"], "float32");
  run(job({"train.max_steps=1", "strategy.amp=true"}), 1);
  std::string why;
  const bool low = !low_precision_types("cpu", &why).empty();
  EXPECT_EQ(events("start").at(0)["precision"], low ? "bfloat16" : "float32");
}

}  // namespace
}  // namespace fleet
