// Training with recomputation on the CPU: the bits of a run without it, in less memory.
#include <gtest/gtest.h>

#include "exec/backend.h"
#include "tests/engine/train/small_net.h"

namespace fleet {
namespace {

const std::string kEvery = " recompute: true recompute_configs { checkpoints: \"every block\" }";

// Both trained for some steps.
void expect_same_bits(SmallNet& plain, SmallNet& recomputed) {
  EXPECT_LT(recomputed.executor().plan().arena_bytes, plain.executor().plan().arena_bytes);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(plain.step(step), recomputed.step(step));
  EXPECT_EQ(differences(plain.saved(), recomputed.saved()), "");
}

TEST(RecomputeTraining, BatchNorm_KeepsRunningStatistics) {
  const std::string apart = " build_strategy { fuse_bn_act_ops: false fuse_bn_add_act_ops: false }";
  SmallNet plain("resnet20", apart), recomputed("resnet20", kEvery + apart);
  expect_same_bits(plain, recomputed);
}

TEST(RecomputeTraining, FusedBatchNorm_KeepsRunningStatistics) {
  const std::string fused = " build_strategy { fuse_bn_act_ops: true fuse_bn_add_act_ops: true }";
  SmallNet plain("resnet20", fused), recomputed("resnet20", kEvery + fused);
  expect_same_bits(plain, recomputed);
}

TEST(RecomputeTraining, Dropout_DropsTheSame) {
  const std::string settings = R"({"dropout": 0.5})";
  SmallNet plain("lenet", "", SmallNet::kMomentum, settings);
  SmallNet recomputed("lenet", kEvery, SmallNet::kMomentum, settings);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(plain.step(step), recomputed.step(step));
  EXPECT_EQ(differences(plain.saved(), recomputed.saved()), "");
}

TEST(RecomputeTraining, FewerCheckpoints_GiveTheSameBits) {
  SmallNet plain("resnet20", "");
  SmallNet recomputed("resnet20",
                      " recompute: true recompute_configs { checkpoints: \"every 3 blocks\" }");
  expect_same_bits(plain, recomputed);
}

TEST(RecomputeTraining, Offload_GivesTheSameBitsInLessMemory) {
  const std::string offload =
      " recompute: true recompute_configs { checkpoints: \"every block\" enable_offload: true }";
  SmallNet kept("resnet20", kEvery), offloaded("resnet20", offload);
  EXPECT_GT(offloaded.executor().plan().host_bytes, 0u);
  expect_same_bits(kept, offloaded);
}

TEST(RecomputeTraining, UnderGradientMergeAmpAndLamb_GivesTheSameBits) {
  std::string why;
  if (low_precision_types("cpu", &why).empty()) GTEST_SKIP() << why;
  const std::string others =
      " gradient_merge: true gradient_merge_configs { k_steps: 2 } amp: true lamb: true";
  const std::string adam = R"({"name": "adam"})";
  SmallNet plain("resnet20", others, adam), recomputed("resnet20", others + kEvery, adam);
  expect_same_bits(plain, recomputed);
}

}  // namespace
}  // namespace fleet
