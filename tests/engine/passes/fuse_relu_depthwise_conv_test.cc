#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/network.h"
#include "passes/backward.h"
#include "passes/pass.h"
#include "tests/captured_log.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::Not;

class FuseReluDepthwiseConv : public testing::Test {
 protected:
  VarId depthwise(const std::string& name, VarId x) {
    return network_.conv2d(name, x, {.channels = 16, .padding = 1, .groups = 16});
  }
  VarId pointwise(const std::string& name, VarId x) {
    return network_.conv2d(name, x, {.channels = 16, .kernel = 1});
  }
  int count(const std::string& type) const {
    int found = 0;
    for (const Op& op : program_.ops()) found += op.type() == type;
    return found;
  }
  int count_fused() const {
    int found = 0;
    for (const Op& op : program_.ops()) {
      found += op.type() == "conv2d" && op.attributes.text("input_activation") == "relu";
    }
    return found;
  }
  // Whether the pass changed anything; its log is in captured_log_.
  bool run() {
    bool changed = false;
    captured_log_ =
        captured_log([&] { changed = run_pass("fuse_relu_depthwise_conv", program_, {}); });
    return changed;
  }

  Program program_;
  SectionId forward_ = program_.add_section("forward", {});
  VarId image_ = program_.feed("image", DType::kFloat32, {2, 16, 8, 8});
  Network network_{program_, forward_, true, kNoVar};
  std::string captured_log_;
};

TEST_F(FuseReluDepthwiseConv, ReluInFrontOfDepthwise_IsTakenIn) {
  const VarId x = pointwise("a", image_);
  const VarId y = depthwise("b", network_.relu(x));
  EXPECT_TRUE(run());
  EXPECT_EQ(count("relu"), 0);
  EXPECT_EQ(count_fused(), 1);
  EXPECT_THAT(captured_log_, HasSubstr("---  detected 1 subgraphs (fuse_relu_depthwise_conv)"));
  EXPECT_FALSE(run()) << "a second time";
  append_backward(program_, forward_, program_.emit(forward_, "mean", {y})[0], 1);
  verify(program_);
  EXPECT_EQ(count("relu_grad"), 0);
  for (const Op& op : program_.ops()) {
    if (op.type() != "conv2d_data_grad" || op.inputs[2] == kNoVar) continue;
    EXPECT_EQ(op.inputs[2], x);
  }
}

TEST_F(FuseReluDepthwiseConv, ReluOfABatchNorm_StaysThereAndItIsSaid) {
  depthwise("b", network_.relu(network_.batch_norm("bn", image_)));
  run_pass("fuse_bn_act", program_, {});
  EXPECT_FALSE(run());
  EXPECT_THAT(captured_log_, ::testing::AllOf(HasSubstr("1 relus"), HasSubstr("stay fused")));
}

TEST_F(FuseReluDepthwiseConv, WithoutFuseBnAct_TakesTheReluOfABatchNorm) {
  depthwise("b", network_.relu(network_.batch_norm("bn", image_)));
  EXPECT_TRUE(run());
  EXPECT_EQ(count_fused(), 1);
  EXPECT_THAT(captured_log_, Not(HasSubstr("stay fused")));
}

TEST_F(FuseReluDepthwiseConv, AnotherConvolutionOrReader_Stays) {
  pointwise("a", network_.relu(image_));
  network_.conv2d("groups", network_.relu(image_), {.channels = 16, .padding = 1, .groups = 8});
  network_.conv2d("twice", network_.relu(image_), {.channels = 32, .padding = 1, .groups = 16});
  const VarId x = network_.relu(image_);
  network_.add(depthwise("b", x), x);
  EXPECT_FALSE(run());
  EXPECT_EQ(count("relu"), 4);
}

}  // namespace
}  // namespace fleet
