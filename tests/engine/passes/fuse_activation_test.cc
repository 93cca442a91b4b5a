#include <gtest/gtest.h>

#include "models/network.h"
#include "passes/backward.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class FuseActivation : public testing::Test {
 protected:
  int count(const std::string& type) const {
    int found = 0;
    for (const Op& op : program_.ops()) found += op.type() == type;
    return found;
  }
  const Op& first(const std::string& type) const {
    for (const Op& op : program_.ops()) {
      if (op.type() == type) return op;
    }
    throw Error(ErrorCode::kInternal, "no " + type);
  }

  Program program_;
  SectionId forward_ = program_.add_section("forward", {});
  SectionId evaluate_ = program_.add_section("evaluate", {.training = false, .evaluation = true});
  VarId image_ = program_.feed("image", DType::kFloat32, {2, 3, 8, 8});
  Network training_{program_, forward_, true, kNoVar};
  Network evaluation_{program_, evaluate_, false, kNoVar};
};

TEST_F(FuseActivation, BatchNormAndRelu_BecomeOne) {
  const VarId y = training_.relu(training_.batch_norm("bn", image_));
  evaluation_.relu(evaluation_.batch_norm("bn", image_));
  EXPECT_TRUE(run_pass("fuse_bn_act", program_, {}));
  EXPECT_EQ(count("relu"), 0);
  ASSERT_EQ(count("batch_norm"), 2);
  const Op &train = program_.ops()[0], &test = program_.ops()[1];
  EXPECT_EQ(train.attributes.text("activation"), "relu");
  EXPECT_EQ(train.outputs[0], y);
  EXPECT_NE(train.outputs[5], kNoVar) << "the gradient needs the mask";
  EXPECT_EQ(test.attributes.text("activation"), "relu");
  EXPECT_EQ(test.outputs[5], kNoVar);
}

TEST_F(FuseActivation, FusedBatchNorm_CanBeDifferentiated) {
  const VarId y = training_.relu(training_.batch_norm("bn", image_));
  const VarId loss = program_.emit(forward_, "mean", {y})[0];
  run_pass("fuse_bn_act", program_, {});
  append_backward(program_, forward_, loss, 1);
  verify(program_);
  EXPECT_EQ(count("relu_grad"), 0);
  EXPECT_EQ(first("batch_norm_grad").attributes.text("activation"), "relu");
}

TEST_F(FuseActivation, SecondReader_KeepsThemApart) {
  const VarId x = training_.batch_norm("bn", image_);
  training_.add(training_.relu(x), x);
  EXPECT_FALSE(run_pass("fuse_bn_act", program_, {}));
  EXPECT_EQ(count("relu"), 1);
}

TEST_F(FuseActivation, ActivationThatIsNotTakenIn_Stays) {
  training_.activation("tanh", training_.batch_norm("bn", image_));
  EXPECT_FALSE(run_pass("fuse_bn_act", program_, {}));
  EXPECT_EQ(count("tanh"), 1);
}

TEST_F(FuseActivation, AddAndRelu_BecomeOne) {
  const VarId y = training_.relu(training_.add(training_.batch_norm("bn", image_), image_));
  EXPECT_FALSE(run_pass("fuse_bn_act", program_, {}));
  EXPECT_TRUE(run_pass("fuse_elewise_add_act", program_, {}));
  EXPECT_EQ(count("relu"), 0);
  EXPECT_EQ(first("elementwise_add").attributes.text("activation"), "relu");
  EXPECT_EQ(first("elementwise_add").outputs[0], y);
}

TEST_F(FuseActivation, ResidualJoin_BecomesOneAndCanBeDifferentiated) {
  const VarId x = training_.relu(training_.conv2d("conv", image_, {.channels = 3, .padding = 1}));
  const VarId y = training_.relu(training_.add(training_.batch_norm("bn", x), x));
  const VarId loss = program_.emit(forward_, "mean", {y})[0];
  EXPECT_TRUE(run_pass("fuse_elewise_add_act", program_, {}));
  EXPECT_TRUE(run_pass("fuse_bn_add_act", program_, {}));
  EXPECT_EQ(count("elementwise_add"), 0);
  EXPECT_EQ(count("batch_norm"), 0);
  const Op& join = first("fused_bn_add_activation");
  EXPECT_EQ(join.inputs[0], x);
  EXPECT_EQ(join.inputs[5], x);
  EXPECT_EQ(join.outputs[0], y);
  EXPECT_NE(join.outputs[5], kNoVar);
  append_backward(program_, forward_, loss, 1);
  verify(program_);
  EXPECT_EQ(count("fused_bn_add_activation_grad"), 1);
  EXPECT_NE(program_.gradient(program_.find("bn.weight")), kNoVar);
}

TEST_F(FuseActivation, JoinOfTwoBatchNorms_TakesInTheLater) {
  const VarId a = training_.batch_norm("a", image_), b = training_.batch_norm("b", image_);
  training_.relu(training_.add(a, b));
  run_pass("fuse_elewise_add_act", program_, {});
  EXPECT_TRUE(run_pass("fuse_bn_add_act", program_, {}));
  EXPECT_EQ(first("fused_bn_add_activation").inputs[5], a);
  EXPECT_EQ(count("batch_norm"), 1);
}

TEST_F(FuseActivation, JoinOfABatchNormThatIsReadElsewhere_Stays) {
  const VarId a = training_.batch_norm("a", image_);
  training_.relu(training_.add(a, image_));
  training_.relu(a);
  run_pass("fuse_elewise_add_act", program_, {});
  EXPECT_FALSE(run_pass("fuse_bn_add_act", program_, {}));
}

TEST_F(FuseActivation, Again_ChangesNothing) {
  training_.relu(training_.batch_norm("bn", image_));
  EXPECT_TRUE(run_pass("fuse_bn_act", program_, {}));
  const std::string once = print_text(program_);
  EXPECT_FALSE(run_pass("fuse_bn_act", program_, {}));
  EXPECT_EQ(print_text(program_), once);
}

TEST_F(FuseActivation, AfterBackward_IsAnError) {
  const VarId y = training_.relu(training_.batch_norm("bn", image_));
  append_backward(program_, forward_, program_.emit(forward_, "mean", {y})[0], 1);
  EXPECT_THROW(run_pass("fuse_bn_act", program_, {}), Error);
}

}  // namespace
}  // namespace fleet
