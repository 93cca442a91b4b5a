#include <gtest/gtest.h>

#include "passes/backward.h"
#include "passes/pass.h"

namespace fleet {
namespace {

int count(const Program& program, const std::string& type) {
  int found = 0;
  for (const Op& op : program.ops()) found += op.type() == type;
  return found;
}

// The MLP of a block of GPT-2. reads_hidden: another operation reads gelu's result.
struct Mlp {
  Program program;
  SectionId forward = program.add_section("forward", {.training = true});
  VarId before, hidden;

  explicit Mlp(bool approximate, bool reads_hidden = false) {
    const VarId x = program.feed("x", DType::kFloat32, {2, 3, 8});
    const VarId first = program.parameter("first", {16, 8}, {});
    const VarId bias = program.parameter("bias", {16}, {});
    const VarId second = program.parameter("second", {8, 16}, {});
    const Attributes axis = {{"axis", int64_t{2}}};
    before = program.emit(forward, "fc", {x, first, bias}, axis)[0];
    hidden = program.emit(forward, "gelu", {before}, {{"approximate", approximate}})[0];
    VarId y = program.emit(forward, "fc", {hidden, second, kNoVar}, axis)[0];
    if (reads_hidden) {
      const VarId mean = program.emit(forward, "mean", {hidden})[0];
      y = program.emit(forward, "elementwise_add",
                       {program.emit(forward, "mean", {y})[0], mean})[0];
    }
    append_backward(program, forward, program.emit(forward, "mean", {y})[0], 1);
  }
};

TEST(FuseFcGelu, BothDirections_BecomeProducts) {
  Mlp mlp(/*approximate=*/true);
  const size_t before = mlp.program.ops().size();
  EXPECT_TRUE(run_pass("fuse_fc_gelu", mlp.program, {}));
  EXPECT_EQ(mlp.program.ops().size(), before - 2);
  EXPECT_EQ(count(mlp.program, "gelu") + count(mlp.program, "gelu_grad"), 0);
  EXPECT_EQ(count(mlp.program, "fc"), 1);
  EXPECT_EQ(count(mlp.program, "fc_gelu_data_grad"), 1);
  for (const Op& op : mlp.program.ops()) {
    if (op.type() != "fc_gelu") continue;
    EXPECT_EQ(op.outputs, (std::vector<VarId>{mlp.hidden, mlp.before}));
    EXPECT_EQ(op.attributes.integer("axis"), 2);
  }
}

// cuBLASLt has the form with tanh only.
TEST(FuseFcGelu, FormByTheErrorFunction_Stays) {
  Mlp mlp(/*approximate=*/false);
  EXPECT_FALSE(run_pass("fuse_fc_gelu", mlp.program, {}));
}

// The gradient of gelu's result is then a sum.
TEST(FuseFcGelu, ResultWithTwoReaders_KeepsTheGradient) {
  Mlp mlp(/*approximate=*/true, /*reads_hidden=*/true);
  EXPECT_TRUE(run_pass("fuse_fc_gelu", mlp.program, {}));
  EXPECT_EQ(count(mlp.program, "fc_gelu"), 1);
  EXPECT_EQ(count(mlp.program, "gelu_grad"), 1);
}

TEST(FuseFcGelu, Pipeline_ChangesNothing) {
  Mlp mlp(/*approximate=*/true);
  EXPECT_FALSE(run_pass("fuse_fc_gelu", mlp.program, {.ranks = 2, .stages = 2}));
}

}  // namespace
}  // namespace fleet
