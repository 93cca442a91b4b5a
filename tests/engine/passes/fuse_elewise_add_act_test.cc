#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/backward.h"
#include "passes/pass.h"
#include "tests/captured_log.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FuseElewiseAddAct : public testing::Test {
 protected:
  VarId emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes = {}) {
    return program_.emit(section_, type, std::move(inputs), std::move(attributes))[0];
  }
  VarId scale(VarId x) { return emit("scale", {x}, {{"scale", 2.0}, {"bias", 3.0}}); }
  std::vector<std::string> types() const {
    std::vector<std::string> all;
    for (const Op& op : program_.ops()) all.push_back(op.type());
    return all;
  }
  bool run() {
    bool changed = false;
    captured_log_ = captured_log([&] { changed = run_pass("fuse_elewise_add_act", program_, {}); });
    return changed;
  }
  // That the backward pass can follow.
  void differentiate() {
    append_backward(program_, section_, emit("mean", {program_.ops().back().outputs[0]}), 1);
    verify(program_);
  }

  Program program_;
  SectionId section_ = program_.add_section("forward", {});
  VarId x_ = program_.parameter("x", {4, 6}, {});
  VarId y_ = program_.parameter("y", {4, 6}, {});
  VarId row_ = program_.parameter("row", {6}, {});
  std::string captured_log_;
};

TEST_F(FuseElewiseAddAct, ScaleOrTanhBehind_IsTakenIn) {
  const VarId first = scale(emit("elementwise_add", {x_, y_}));
  const VarId second = emit("tanh", {emit("elementwise_add", {first, row_})});
  EXPECT_TRUE(run());
  ASSERT_THAT(types(), ElementsAre("elementwise_add", "elementwise_add"));
  const Op &scaled = program_.ops()[0], &bounded = program_.ops()[1];
  EXPECT_EQ(scaled.attributes.text("activation"), "scale");
  EXPECT_EQ(scaled.attributes.number("scale"), 2);
  EXPECT_EQ(scaled.attributes.number("bias"), 3);
  EXPECT_EQ(scaled.outputs[0], first);
  EXPECT_EQ(bounded.attributes.text("activation"), "tanh");
  EXPECT_EQ(bounded.outputs[0], second);
  EXPECT_THAT(captured_log_, HasSubstr("---  detected 2 subgraphs (fuse_elewise_add_act)"));
  EXPECT_FALSE(run()) << "a second time";
  differentiate();
}

TEST_F(FuseElewiseAddAct, ActivationInFront_IsTakenIn) {
  for (const char* type : {"relu", "tanh"}) {
    emit("softmax", {emit("elementwise_add", {x_, emit(type, {y_})})});
  }
  emit("softmax", {emit("elementwise_add", {x_, scale(row_)})});
  EXPECT_TRUE(run());
  ASSERT_EQ(program_.ops().size(), 6u);
  EXPECT_EQ(program_.ops()[0].attributes.text("y_activation"), "relu");
  EXPECT_EQ(program_.ops()[2].attributes.text("y_activation"), "tanh");
  EXPECT_EQ(program_.ops()[4].attributes.text("y_activation"), "scale");
  EXPECT_THAT(program_.ops()[4].inputs, ElementsAre(x_, row_));
  differentiate();
}

TEST_F(FuseElewiseAddAct, FirstOperandOfOneShape_TakesTheSecondsPlace) {
  emit("elementwise_add", {emit("tanh", {x_}), y_});
  EXPECT_TRUE(run());
  ASSERT_THAT(types(), ElementsAre("elementwise_add"));
  EXPECT_THAT(program_.ops()[0].inputs, ElementsAre(y_, x_));
  EXPECT_EQ(program_.ops()[0].attributes.text("y_activation"), "tanh");
}

TEST_F(FuseElewiseAddAct, FirstOperandThatIsSpreadOver_Stays) {
  emit("elementwise_add", {emit("tanh", {x_}), row_});
  EXPECT_FALSE(run());
  EXPECT_THAT(types(), ElementsAre("tanh", "elementwise_add"));
}

TEST_F(FuseElewiseAddAct, ActivationReadElsewhere_Stays) {
  const VarId t = emit("tanh", {y_});
  emit("elementwise_mul", {emit("elementwise_add", {x_, t}), t});
  EXPECT_FALSE(run());
}

TEST_F(FuseElewiseAddAct, BothSides_TakesTheOneBehind) {
  emit("relu", {emit("elementwise_add", {x_, emit("tanh", {y_})})});
  EXPECT_TRUE(run());
  EXPECT_THAT(types(), ElementsAre("tanh", "elementwise_add"));
  EXPECT_EQ(program_.ops()[1].attributes.text("activation"), "relu");
}

TEST_F(FuseElewiseAddAct, OneActivationOfTwoSums_IsTakenByNeitherTwice) {
  const VarId sum = emit("elementwise_add", {x_, y_});
  emit("elementwise_add", {x_, scale(sum)});  // behind the first, in front of the second
  EXPECT_TRUE(run());
  EXPECT_THAT(types(), ElementsAre("elementwise_add", "elementwise_add"));
  EXPECT_EQ(program_.ops()[0].attributes.text("activation"), "scale");
  EXPECT_EQ(program_.ops()[1].attributes.text("y_activation"), "");
  differentiate();
}

}  // namespace
}  // namespace fleet
