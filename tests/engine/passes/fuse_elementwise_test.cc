#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/backward.h"
#include "passes/pass.h"
#include "tests/captured_log.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FuseElementwise : public testing::Test {
 protected:
  VarId emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes = {}) {
    return program_.emit(section_, type, std::move(inputs), std::move(attributes))[0];
  }
  // Types of the operations, in order.
  std::vector<std::string> types() const {
    std::vector<std::string> all;
    for (const Op& op : program_.ops()) all.push_back(op.type());
    return all;
  }
  const Op& fused() const {
    for (const Op& op : program_.ops()) {
      if (op.type() == "fused_elementwise") return op;
    }
    throw Error(ErrorCode::kInternal, "nothing fused");
  }
  bool run() {
    bool changed = false;
    captured_log_ = captured_log([&] { changed = run_pass("fuse_elementwise", program_, {}); });
    return changed;
  }

  Program program_;
  SectionId section_ = program_.add_section("forward", {});
  VarId x_ = program_.feed("x", DType::kFloat32, {4, 6});
  VarId y_ = program_.feed("y", DType::kFloat32, {4, 6});
  std::string captured_log_;
};

TEST_F(FuseElementwise, Chain_BecomesOne) {
  const VarId last = emit("tanh", {emit("scale", {emit("elementwise_add", {x_, y_})})});
  EXPECT_TRUE(run());
  EXPECT_THAT(types(), ElementsAre("fused_elementwise"));
  EXPECT_THAT(fused().inputs, ElementsAre(x_, y_));
  EXPECT_THAT(fused().outputs, ElementsAre(last));
  EXPECT_THAT(captured_log_, HasSubstr("---  detected 1 subgraphs (fuse_elementwise)"));
  EXPECT_FALSE(run()) << "a second time";
}

TEST_F(FuseElementwise, Tree_BecomesOne) {
  emit("elementwise_mul", {emit("tanh", {x_}), emit("sigmoid", {y_})});
  EXPECT_TRUE(run());
  EXPECT_THAT(types(), ElementsAre("fused_elementwise"));
}

TEST_F(FuseElementwise, OneAlone_Stays) {
  emit("softmax", {emit("tanh", {x_})});
  EXPECT_FALSE(run());
  EXPECT_THAT(types(), ElementsAre("tanh", "softmax"));
  EXPECT_THAT(captured_log_, HasSubstr("---  detected 0 subgraphs (fuse_elementwise)"));
}

TEST_F(FuseElementwise, ValueReadElsewhere_IsAnOutputToo) {
  const VarId middle = emit("tanh", {x_});
  const VarId last = emit("scale", {middle});
  emit("softmax", {middle});
  EXPECT_TRUE(run());
  EXPECT_THAT(types(), ElementsAre("fused_elementwise", "softmax"));
  EXPECT_THAT(fused().outputs, ElementsAre(middle, last));
}

// An operation in between reads the first and is not read by the last: the last is moved forward.
TEST_F(FuseElementwise, ReaderBetween_StaysBehind) {
  const VarId middle = emit("tanh", {x_});
  emit("softmax", {middle});
  emit("scale", {middle});
  EXPECT_TRUE(run());
  EXPECT_THAT(types(), ElementsAre("fused_elementwise", "softmax"));
}

TEST_F(FuseElementwise, WayThroughAnother_KeepsThemApart) {
  const VarId middle = emit("tanh", {x_});
  emit("elementwise_add", {emit("softmax", {middle}), middle});
  EXPECT_FALSE(run());
}

// A state that is written between the two must be read before.
TEST_F(FuseElementwise, WriteBetween_IsNotPassed) {
  const VarId state = program_.state("s", {4, 6}, {});
  const VarId first = emit("tanh", {state});
  const VarId other = emit("softmax", {first});
  program_.append(section_, "scale", {other}, {state});
  emit("elementwise_add", {other, first});
  EXPECT_FALSE(run());
}

TEST_F(FuseElementwise, OtherSectionOrShape_StaysApart) {
  const VarId first = emit("tanh", {x_});
  const SectionId other = program_.add_section("backward", {});
  program_.emit(other, "scale", {first});
  const VarId flat = emit("reshape", {first}, {{"shape", std::vector<int64_t>{24}}});
  emit("scale", {flat});
  EXPECT_FALSE(run());
}

TEST_F(FuseElementwise, IntegersAndDoubles_StayApart) {
  const VarId keys = program_.feed("keys", DType::kInt64, {4, 6});
  emit("scale", {emit("cast", {keys})});
  emit("cast", {emit("scale", {x_})}, {{"to", std::string("float64")}});
  EXPECT_FALSE(run());
}

TEST_F(FuseElementwise, KeptVariableAndParameterGradient_AreOutputs) {
  const VarId w = program_.parameter("w", {4, 6}, {});
  const VarId named = emit("tanh", {w});
  const VarId loss = emit("mean", {emit("scale", {named}, {{"scale", 3.0}})});
  append_backward(program_, section_, loss, 1);
  const VarId gradient = program_.gradient(w);
  program_.emit(program_.find_section("backward"), "scale", {gradient});
  EXPECT_TRUE(run_pass("fuse_elementwise", program_, {},
                       {{"keep", std::vector<std::string>{program_.var(named).name}}}));
  std::vector<VarId> outputs;
  for (const Op& op : program_.ops()) {
    outputs.insert(outputs.end(), op.outputs.begin(), op.outputs.end());
  }
  EXPECT_THAT(outputs, testing::IsSupersetOf({named, gradient}));
}

TEST_F(FuseElementwise, LongChain_IsCutWhereKernelsEnd) {
  VarId x = x_;
  for (int i = 0; i < 150; ++i) x = emit("scale", {x}, {{"scale", 1.0 + i}});
  EXPECT_TRUE(run());
  EXPECT_EQ(program_.ops().size(), 3u);
}

// An output may take an input's memory, so what spreads must be of fewer bytes than any.
TEST_F(FuseElementwise, WideVectorOverANarrowResult_StaysOutside) {
  const VarId vector = program_.feed("v", DType::kFloat32, {6});
  const VarId sum = emit("elementwise_add", {emit("scale", {x_}), vector});
  emit("cast", {sum}, {{"to", std::string("bfloat16")}});
  run();
  for (const Op& op : program_.ops()) {
    if (op.type() != "fused_elementwise") continue;
    EXPECT_THAT(op.attributes.texts("types"), ElementsAre("float32"));
  }
}

TEST_F(FuseElementwise, BothDirections_AreFused) {
  const VarId w = program_.parameter("w", {4, 6}, {});
  const VarId y = emit("tanh", {emit("elementwise_mul", {emit("sigmoid", {w}), x_})});
  append_backward(program_, section_, emit("mean", {y}), 1);
  EXPECT_TRUE(run());
  verify(program_);
  EXPECT_THAT(types(),
              ElementsAre("fused_elementwise", "mean", "fill", "mean_grad", "fused_elementwise"));
}

// Backward reads what the forward chain read, and computes what lies between again.
TEST_F(FuseElementwise, WhatForwardMadeForBackward_IsComputedAgain) {
  const VarId w = program_.parameter("w", {4, 6}, {});
  const VarId x = emit("softmax", {w});
  const VarId square = emit("elementwise_mul", {x, x});
  const VarId t = emit("tanh", {square});
  const VarId y = emit("elementwise_mul", {t, x});
  append_backward(program_, section_, emit("mean", {y}), 1);
  EXPECT_TRUE(run());
  verify(program_);
  std::vector<const Op*> fused;
  for (const Op& op : program_.ops()) {
    if (op.type() == "fused_elementwise") fused.push_back(&op);
  }
  ASSERT_EQ(fused.size(), 2u);
  EXPECT_THAT(fused[0]->inputs, ElementsAre(x));
  EXPECT_THAT(fused[0]->outputs, ElementsAre(y));
  EXPECT_EQ(fused[1]->inputs.size(), 2u) << "x and the gradient of y";
  EXPECT_THAT(fused[1]->inputs, testing::Contains(x));
  EXPECT_EQ(fused[1]->outputs.size(), 1u);
}

// relu's output is read by its gradient instead of its input: nothing would be saved.
TEST_F(FuseElementwise, ComputingAgainThatReadsAsMuch_IsNotDone) {
  const VarId w = program_.parameter("w", {4, 6}, {});
  const VarId y = emit("relu", {emit("scale", {emit("softmax", {w})}, {{"scale", 2.0}})});
  append_backward(program_, section_, emit("mean", {emit("softmax", {y})}), 1);
  EXPECT_TRUE(run());
  int readers = 0;
  for (const Op& op : program_.ops()) {
    if (op.section != section_) readers += std::count(op.inputs.begin(), op.inputs.end(), y);
  }
  EXPECT_EQ(readers, 1);
}

// Another operation reads the value, so it is stored anyway. Recomputing would keep one more
// tensor.
TEST_F(FuseElementwise, ComputingAgainThatStoresMore_IsNotDone) {
  const VarId w = program_.parameter("w", {4, 6}, {});
  const VarId x = emit("softmax", {w});
  const VarId a = emit("tanh", {x}), b = emit("sigmoid", {x});
  const VarId sum = emit("sum", {emit("softmax", {a}), emit("softmax", {b})});
  emit("elementwise_mul", {a, b});
  append_backward(program_, section_, emit("mean", {sum}), 1);
  run();
  for (const Op& op : program_.ops()) {
    if (op.section == section_ || op.type() != "fused_elementwise") continue;
    EXPECT_THAT(op.inputs, testing::Not(testing::Contains(x)));
  }
}

}  // namespace
}  // namespace fleet
