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
using Json = nlohmann::json;

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
  Json verdict() const {
    const std::string_view output = trim(output_);
    return Json::parse(output.substr(output.rfind('\n') + 1), nullptr, false);
  }
  TrainingJob job_;
  std::string output_, error_;
};

TEST_F(Check, ValidFile_EndsWithZero) {
  EXPECT_EQ(check({}), 0) << error_;
  EXPECT_EQ(check({"--format=json"}), 0) << error_;
  EXPECT_EQ(verdict(), Json({{"ok", true}}));
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

// A launcher checks a line before it starts it, whatever the line prints.
TEST_F(Check, LineThatPrints_HasAVerdictAfterItsOutput) {
  for (const char* option : {"--help", "--print_keys", "--print_flags"}) {
    EXPECT_EQ(check({option, "--format=json"}), 0) << option << error_;
    EXPECT_EQ(verdict(), Json({{"ok", true}})) << option;
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
