#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "strategy/strategy_file.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string saved(const std::string& text, const std::string& release,
                  std::vector<std::string>* left_out) {
  left_out->clear();
  return strategy_text(strategy_proto(text), release, left_out);
}

TEST(SaveStrategy, WhatAReleaseHas_ComesBack) {
  const std::string text =
      "amp: true fuse_grad_size_in_MB: 16 amp_configs { decr_ratio: 0.5 custom_white_list: "
      "'conv2d' } "
      "build_strategy { fuse_bn_act_ops: true } execution_strategy { num_threads: 3 }";
  for (const char* release : {"2.1", "2.6"}) {
    std::vector<std::string> left_out;
    const StrategyProto back = strategy_proto(saved(text, release, &left_out));
    EXPECT_EQ(back.ShortDebugString(), strategy_proto(text).ShortDebugString());
    EXPECT_THAT(left_out, IsEmpty());
  }
}

TEST(SaveStrategy, NamesOfOtherReleases_AreLeftOutAndNamed) {
  const std::string text =
      "fuse_grad_size_in_num: 4 amp_configs { dtype: 'bfloat16' use_pure_bf16: true } "
      "sharding_configs { fuse_broadcast_MB: 8 segment_broadcast_MB: 8 stage: 2 } "
      "pipeline_configs { micro_batch: 2 micro_batch_size: 3 } use_dali: true "
      "build_strategy { fuse_resunit: true mkldnn_enabled_op_types: 'conv2d' } thread_num: 2";
  std::vector<std::string> left_out;
  saved(text, "2.0", &left_out);
  EXPECT_THAT(left_out, ElementsAre("fuse_grad_size_in_num", "amp_configs.use_pure_bf16",
                                    "amp_configs.dtype", "pipeline_configs.micro_batch_size",
                                    "sharding_configs.segment_broadcast_MB",
                                    "sharding_configs.stage", "build_strategy.fuse_resunit",
                                    "build_strategy.mkldnn_enabled_op_types", "use_dali"));
  const std::string later = saved(text, "3.3", &left_out);
  EXPECT_THAT(left_out, ElementsAre("amp_configs.dtype", "pipeline_configs.micro_batch",
                                    "sharding_configs.fuse_broadcast_MB",
                                    "build_strategy.mkldnn_enabled_op_types",
                                    "execution_strategy.num_threads", "use_dali"));
  EXPECT_THAT(later, Not(HasSubstr("execution_strategy")));
}

TEST(SaveStrategy, AtTheirDefaults_OtherReleasesNamesAreNotMissed) {
  std::vector<std::string> left_out;
  saved("fuse_grad_size_in_num: 8 execution_strategy { num_threads: 1 }", "3.3", &left_out);
  EXPECT_THAT(left_out, IsEmpty());
}

// 2.0.0 would search cuDNN's algorithms and take 4000 MiB by default.
TEST(SaveStrategy, DefaultsThatDifferedIn20_AreWrittenOut) {
  std::vector<std::string> left_out;
  const std::string text = saved("", "2.0", &left_out);
  const StrategyProto read = strategy_proto(text);
  EXPECT_TRUE(read.has_cudnn_exhaustive_search());
  EXPECT_FALSE(read.cudnn_exhaustive_search());
  EXPECT_EQ(read.conv_workspace_size_limit(), 512);
  EXPECT_EQ(saved("", "2.6", &left_out), "");
}

TEST(SaveStrategy, UnknownRelease_IsRefused) {
  std::vector<std::string> left_out;
  EXPECT_THROW(saved("", "1.8", &left_out), Error);
}

// Everything in strategy.proto, set to something: only names that the release has may be written.
std::string everything() {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(source_folder()) / "tests/engine/strategy/golden")) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".prototxt" && !name.ends_with("example")) {
      text += read_file(entry.path());
    }
  }
  return text + "amp_configs { dtype: 'float16' } use_dali: true";
}

// Needs a Python with paddlepaddle: FLEET_PADDLE_PYTHON.
TEST(SaveStrategy, Paddle_ReadsIt) {
  const auto python = get_env("FLEET_PADDLE_PYTHON");
  if (!python) GTEST_SKIP() << "FLEET_PADDLE_PYTHON names no Python with paddlepaddle";
  const std::string file = testing::TempDir() + "saved.prototxt",
                    again = testing::TempDir() + "again.prototxt",
                    script = testing::TempDir() + "read.py";
  write_file_atomically(script,
                        "import sys, paddle\n"
                        "from paddle.distributed import fleet\n"
                        "if len(sys.argv) == 1:\n"
                        "    print('release', paddle.__version__)\n"
                        "else:\n"
                        "    strategy = fleet.DistributedStrategy()\n"
                        "    strategy.load_from_prototxt(sys.argv[1])\n"
                        "    strategy.save_to_prototxt(sys.argv[2])\n");
  const std::string command = shell_word(*python) + " " + shell_word(script) + " ";
  ASSERT_EQ(std::system((command + "> " + shell_word(again) + " 2>/dev/null").c_str()), 0);
  const std::string printed = read_file(again);
  const size_t at = printed.find("release ");
  ASSERT_NE(at, std::string::npos) << printed;
  const std::string release = printed[at + 8] == '3' ? "3.3" : "2.6";

  const std::vector<std::string> left_out =
      save_strategy_file(strategy_proto(everything()), release, file);
  EXPECT_THAT(left_out, testing::IsSupersetOf({"amp_configs.dtype", "use_dali"}));
  ASSERT_EQ(std::system((command + shell_word(file) + " " + shell_word(again)).c_str()), 0);
  EXPECT_EQ(strategy_proto(read_file(again)).ShortDebugString(),
            strategy_proto(read_file(file)).ShortDebugString());
}

}  // namespace
}  // namespace fleet
