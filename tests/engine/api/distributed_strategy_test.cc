// A strategy that a program makes: names as typed, errors, files.
#include "api/distributed_strategy.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"
#include "strategy/strategy_file.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DistributedStrategy, Names_AreThoseOfAJobFile) {
  DistributedStrategy strategy;
  strategy.set("amp", true).set("_fuse_grad_size_in_TFLOPS", 50).set("thread_num", 3);
  strategy.set_fields("amp_configs",
                      {{"decr_ratio", 0.5}, {"custom_white_list", {"softmax", "mean"}}});
  strategy.set_build_strategy(BuildStrategy());
  BuildStrategy build;
  build.set("fuse_bn_act_ops", false).set("reduce_strategy", "ReduceStrategy.AllReduce");
  strategy.set_build_strategy(build);
  const StrategyProto& proto = strategy.proto();
  EXPECT_TRUE(proto.amp());
  EXPECT_EQ(proto.fuse_grad_size_in_tflops(), 50);
  EXPECT_EQ(proto.execution_strategy().num_threads(), 3);
  EXPECT_EQ(proto.amp_configs().decr_ratio(), 0.5F);
  EXPECT_THAT(proto.amp_configs().custom_white_list(), ElementsAre("softmax", "mean"));
  EXPECT_TRUE(proto.build_strategy().has_fuse_bn_act_ops());
  EXPECT_FALSE(proto.build_strategy().fuse_bn_act_ops());
  EXPECT_EQ(proto.build_strategy().reduce_strategy(), 0);
}

TEST(DistributedStrategy, SetAgain_Replaces) {
  DistributedStrategy strategy;
  strategy.set("dgc_configs.sparsity", {0.5, 0.75}).set("fuse_grad_size_in_MB", 8);
  const DistributedStrategy before = strategy;
  strategy.set("dgc_configs.sparsity", {0.999}).set("fuse_grad_size_in_MB", 16);
  EXPECT_THAT(strategy.proto().dgc_configs().sparsity(), ElementsAre(0.999F));
  EXPECT_EQ(strategy.proto().fuse_grad_size_in_mb(), 16);
  EXPECT_EQ(before.proto().dgc_configs().sparsity_size(), 2);
}

TEST(DistributedStrategy, UnknownName_IsRefusedAtOnce) {
  DistributedStrategy strategy;
  try {
    strategy.set("fuse_bn_akt_ops", true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("fuse_bn_act_ops"));
  }
  EXPECT_THROW(strategy.set("amp", "perhaps"), Error);
  EXPECT_THROW(strategy.set("nccl_comm_num", 0), Error);
  EXPECT_EQ(strategy.proto().ByteSizeLong(), 0);
}

TEST(DistributedStrategy, File_IsReadBackAsItWasWritten) {
  const std::string path = testing::TempDir() + "api_strategy.prototxt";
  DistributedStrategy written;
  written.set("localsgd", true).set_fields("localsgd_configs", {{"k_steps", 4}});
  EXPECT_THAT(written.save_to_prototxt(path), ElementsAre());
  DistributedStrategy read;
  read.set("nccl_comm_num", 2).load_from_prototxt(path);
  EXPECT_TRUE(read.proto().localsgd());
  EXPECT_EQ(read.proto().localsgd_configs().k_steps(), 4);
  EXPECT_EQ(read.proto().nccl_comm_num(), 2);
  written.set("fuse_grad_size_in_num", 4);
  EXPECT_THAT(written.save_to_prototxt(path, "2.0"), ElementsAre("fuse_grad_size_in_num"));
  EXPECT_THROW(written.save_to_prototxt(path, "1.8"), Error);
}

}  // namespace
}  // namespace fleet
