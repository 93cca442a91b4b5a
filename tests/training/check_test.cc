// fleet-worker --check: its verdict on a job file, for people and for programs.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using json = nlohmann::json;

class Check : public ::testing::Test {
 protected:
  int check(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"job.json", "--check"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const int code = job_.run_worker(arguments, &error_);
    EXPECT_FALSE(std::filesystem::exists(job_.path("output")));
    output_ = job_.folder().read("worker.out");
    return code;
  }
  json verdict() const {
    const std::string_view output = trim(output_);
    return json::parse(output.substr(output.rfind('\n') + 1), nullptr, false);
  }
  TrainingJob job_;
  std::string output_, error_;
};

TEST_F(Check, ValidFile_EndsWithZero) {
  EXPECT_EQ(check({}), 0) << error_;
  EXPECT_EQ(check({"--format=json"}), 0) << error_;
  EXPECT_EQ(verdict(), json({{"ok", true}}));
}

TEST_F(Check, WrongKey_IsInTheVerdict) {
  EXPECT_EQ(check({"--set", "data.batchsize=4"}), 2);
  EXPECT_THAT(error_, StartsWith("fleet-worker: --set: "));
  EXPECT_EQ(check({"--format", "json", "--set", "data.batchsize=4"}), 2);
  EXPECT_EQ(verdict().value("ok", true), false);
  EXPECT_EQ(verdict().value("code", ""), "usage");
  EXPECT_EQ(verdict().value("exit_code", 0), 2);
  EXPECT_THAT(verdict().value("message", ""), StartsWith("--set: "));
}

TEST_F(Check, WrongArgument_IsInTheVerdict) {
  EXPECT_EQ(check({"--sett=a", "--format=json"}), 2);
  EXPECT_THAT(verdict().value("message", ""), HasSubstr("did you mean '--set'?"));
}

// The keys are right, but the training that they describe cannot start.
TEST_F(Check, MistakeOfTheTraining_IsInTheVerdict) {
  EXPECT_EQ(check({"--set", "optimizer.frozen=['nothere.*']"}), 2);
  EXPECT_THAT(error_, HasSubstr("optimizer.frozen"));
  EXPECT_EQ(check({"--format=json", "--set", "checkpoint.keep_best=acc4"}), 2);
  EXPECT_THAT(verdict().value("message", ""), HasSubstr("checkpoint.keep_best.metric"));
  const std::vector<std::string> ema = {"--set", "train.ema=0.9", "--set",
                                        "strategy.pipeline=true"};
  EXPECT_EQ(check(ema), 0) << error_;
  EXPECT_EQ(check({"--ranks=2", ema[0], ema[1], ema[2], ema[3]}), 2);
  EXPECT_THAT(error_, HasSubstr("train.ema.decay"));
}

TEST_F(Check, WhatCannotBeChecked_IsSaid) {
  const std::vector<std::string> list = {"--set", "data.source=image_list", "--set",
                                         "data.train.list=none.txt"};
  EXPECT_EQ(check(list), 0) << error_;
  EXPECT_THAT(output_, ::testing::Not(HasSubstr("data.image")));
  EXPECT_EQ(check({list[0], list[1], list[2], list[3], "--set", "data.image=null"}), 0) << error_;
  EXPECT_THAT(output_, HasSubstr("data.image.height"));
  EXPECT_EQ(
      check({list[0], list[1], list[2], list[3], "--set", "data.image=null", "--format=json"}), 0);
  EXPECT_THAT(verdict().value("not_checked", ""), HasSubstr("data.image.height"));
}

// The Program of a rank depends on the number of ranks. Nothing is spawned.
TEST_F(Check, Fleetrun_ChecksForTheRanksThatItWouldStart) {
  const auto two = job_.start("two", {"--nproc_per_node=2"},
                              {"train.ema=0.9", "strategy.pipeline=true", "train.output=two"});
  EXPECT_EQ(two->wait(), 2);
  EXPECT_THAT(two->output(), HasSubstr("train.ema.decay"));
  EXPECT_FALSE(std::filesystem::exists(job_.path("log.two/workerlog.0")));
}

// A launcher checks a line before it starts it, whatever the line prints.
TEST_F(Check, LineThatPrints_HasAVerdictAfterItsOutput) {
  for (const char* option : {"--help", "--print_keys", "--print_flags"}) {
    EXPECT_EQ(check({option, "--format=json"}), 0) << option << error_;
    EXPECT_EQ(verdict(), json({{"ok", true}})) << option;
  }
}

TEST_F(Check, TwoActions_AreRefused) {
  using Line = std::vector<std::string>;
  for (const Line& line : {Line{"--save_strategy=s", "--export_onnx=x"},
                           {"--print_config", "--explain"},
                           {"--predict=images", "--export_onnx=x"},
                           {"--profile", "--export_onnx=x"},
                           {"--explain", "--for=t4", "--device=cpu"}}) {
    EXPECT_EQ(check(line), 2) << line[1];
    EXPECT_THAT(error_, HasSubstr("cannot be combined")) << line[1];
  }
  EXPECT_EQ(check({"--print_config", "--print_program", "--print_plan", "--predict=images"}), 0);
}

TEST_F(Check, OptionWithoutItsValue_IsNamed) {
  EXPECT_EQ(job_.run_worker({"job.json", "--set", "--check"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("--set: it needs a value"));
  EXPECT_EQ(job_.run_worker({"job.json", "--predict", "--set", "train.output=x"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("--predict: it needs a value"));
  EXPECT_EQ(check({"--ranks=0"}), 2);
  EXPECT_THAT(error_, HasSubstr("1000000"));
}

TEST_F(Check, OptionThatBelongsToAnother_IsRefusedAlone) {
  for (const char* option : {"--nodes=2", "--for=h200", "--measure=never", "--link_rate=10G"}) {
    EXPECT_EQ(job_.run_worker({"job.json", option}, &error_), 2) << option;
    EXPECT_THAT(error_, HasSubstr("requires --explain")) << option;
  }
  for (const char* option : {"--size=8", "--raw", "--jpeg", "--quality=9", "--pack_threads=2"}) {
    EXPECT_EQ(job_.run_worker({"job.json", option}, &error_), 2) << option;
    EXPECT_THAT(error_, HasSubstr("requires --pack")) << option;
  }
  EXPECT_EQ(job_.run_worker({"job.json", "--paddle=2.0"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("requires --save_strategy"));
}

TEST_F(Check, WordsBehindTheJobFile_AreOnlyImages) {
  EXPECT_EQ(check({"second.json"}), 2);
  EXPECT_THAT(error_, HasSubstr("unexpected argument 'second.json'"));
  EXPECT_EQ(check({"--predict", "a.png", "b.png"}), 0) << error_;
}

TEST_F(Check, MistypedOption_IsCorrected) {
  EXPECT_EQ(job_.run_worker({"job.json", "--sett=model.name=mlp"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("corrected: fleet-worker job.json --set=model.name=mlp"));
}

TEST_F(Check, FormatAlone_IsRefused) {
  EXPECT_EQ(job_.run_worker({"job.json", "--format=json"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("--check"));
}

// Training would divide the global batch by it.
TEST_F(Check, RanksOfATraining_AreRefused) {
  EXPECT_EQ(job_.run_worker({"job.json", "--ranks=4"}, &error_), 2);
  EXPECT_THAT(error_, HasSubstr("--nproc_per_node"));
}

}  // namespace
}  // namespace fleet
