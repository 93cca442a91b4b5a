#include <gtest/gtest.h>

#include "models/network.h"
#include "passes/backward.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class FuseBnRecomputedAct : public testing::Test {
 protected:
  std::vector<const Op*> all(const std::string& type) const {
    std::vector<const Op*> found;
    for (const Op& op : program_.ops()) {
      if (op.type() == type) found.push_back(&op);
    }
    return found;
  }
  void differentiate(VarId y) {
    append_backward(program_, forward_, program_.emit(forward_, "mean", {y})[0], 1);
    verify(program_);
  }

  Program program_;
  SectionId forward_ = program_.add_section("forward", {});
  VarId image_ = program_.feed("image", DType::kFloat32, {2, 3, 8, 8});
  Network network_{program_, forward_, true, kNoVar};
};

TEST_F(FuseBnRecomputedAct, Activations_BecomePartOfTheNormalization) {
  for (const char* activation : {"relu6", "silu", "hardswish"}) {
    network_.activation(activation, network_.batch_norm(activation, image_));
    EXPECT_TRUE(run_pass("fuse_bn_recomputed_act", program_, {})) << activation;
    EXPECT_TRUE(all(activation).empty());
    const Op& norm = *all("batch_norm").back();
    EXPECT_EQ(norm.attributes.text("activation"), activation);
    EXPECT_EQ(norm.outputs[5], kNoVar) << "no mask";
  }
  EXPECT_FALSE(run_pass("fuse_bn_recomputed_act", program_, {}));
}

TEST_F(FuseBnRecomputedAct, ReluAndOthers_Stay) {
  network_.relu(network_.batch_norm("a", image_));
  network_.activation("tanh", network_.batch_norm("b", image_));
  EXPECT_FALSE(run_pass("fuse_bn_recomputed_act", program_, {}));
}

TEST_F(FuseBnRecomputedAct, BatchNormThatIsReadTwice_Stays) {
  const VarId x = network_.batch_norm("bn", image_);
  network_.add(network_.activation("silu", x), x);
  EXPECT_FALSE(run_pass("fuse_bn_recomputed_act", program_, {}));
}

// As in a block with squeeze-excitation, where two operations read the result.
TEST_F(FuseBnRecomputedAct, GradientsOfSeveralReaders_AreAddedInsideTheGradient) {
  const VarId y = network_.activation("silu", network_.batch_norm("bn", image_));
  const VarId sum = network_.add(program_.emit(forward_, "tanh", {y})[0],
                                 program_.emit(forward_, "sigmoid", {y})[0]);
  run_pass("fuse_bn_recomputed_act", program_, {});
  differentiate(sum);
  ASSERT_EQ(all("batch_norm_activation_grad").size(), 1u);
  EXPECT_TRUE(all("silu_grad").empty());
  EXPECT_TRUE(run_pass("fuse_gradient_sums", program_, {}));
  verify(program_);
  EXPECT_TRUE(all("sum").empty());
  EXPECT_EQ(all("batch_norm_activation_grad")[0]->inputs.size(), 7u);
}

}  // namespace
}  // namespace fleet
