#include <gtest/gtest.h>

#include "models/network.h"
#include "passes/backward.h"
#include "passes/pass.h"

namespace fleet {
namespace {

int count_sums(const Program& program, const std::string& type) {
  int found = 0;
  for (const Op& op : program.ops()) found += op.type() == type;
  return found;
}

// relu read by `readers` convolutions whose outputs are added up.
Program branches(int readers) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId image = program.feed("image", DType::kFloat32, {2, 3, 8, 8});
  Network network(program, forward, true, kNoVar);
  const VarId x = network.relu(network.conv2d("stem", image, {.channels = 3, .kernel = 1}));
  VarId y = network.conv2d("a", x, {.channels = 3, .kernel = 1});
  for (int i = 1; i < readers; ++i) {
    y = network.add(y, network.conv2d("b" + std::to_string(i), x, {.channels = 3, .kernel = 1}));
  }
  append_backward(program, forward, program.emit(forward, "mean", {y})[0], 1);
  return program;
}

TEST(FuseGradientSums, TwoReaders_BecomeOneOperation) {
  Program program = branches(2);
  ASSERT_EQ(count_sums(program, "relu_grad"), 1);
  const int sums = count_sums(program, "sum");
  EXPECT_TRUE(run_pass("fuse_gradient_sums", program, {}));
  EXPECT_EQ(count_sums(program, "relu_grad"), 0);
  EXPECT_EQ(count_sums(program, "sum_relu_grad"), 1);
  EXPECT_EQ(count_sums(program, "sum"), sums - 1);
  for (const Op& op : program.ops()) {
    if (op.type() != "sum_relu_grad") continue;
    EXPECT_EQ(op.inputs.size(), 3u);
  }
}

TEST(FuseGradientSums, OneReader_ChangesNothing) {
  Program program = branches(1);
  EXPECT_FALSE(run_pass("fuse_gradient_sums", program, {}));
}

TEST(FuseGradientSums, SumThatIsReadElsewhere_Stays) {
  Program program = branches(2);
  VarId dy = kNoVar;
  for (const Op& op : program.ops()) {
    if (op.type() == "relu_grad") dy = op.inputs[1];
  }
  program.emit(program.find_section("backward"), "scale", {dy});
  EXPECT_FALSE(run_pass("fuse_gradient_sums", program, {}));
}

// A residual join that two operations read: both contributions go into its gradient.
TEST(FuseGradientSums, FusedJoin_TakesInTheSum) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId image = program.feed("image", DType::kFloat32, {2, 3, 8, 8});
  Network network(program, forward, true, kNoVar);
  const VarId x = network.conv2d("stem", image, {.channels = 3, .kernel = 1});
  const VarId join = network.relu(network.add(network.batch_norm("bn", x), image));
  const VarId y = network.add(network.conv2d("a", join, {.channels = 3, .kernel = 1}), join);
  const VarId loss = program.emit(forward, "mean", {y})[0];
  run_pass("fuse_elewise_add_act", program, {});
  run_pass("fuse_bn_add_act", program, {});
  append_backward(program, forward, loss, 1);
  EXPECT_TRUE(run_pass("fuse_gradient_sums", program, {}));
  EXPECT_EQ(count_sums(program, "sum"), 0);
  for (const Op& op : program.ops()) {
    if (op.type() != "fused_bn_add_activation_grad") continue;
    EXPECT_EQ(op.inputs.size(), 7u);
  }
}

}  // namespace
}  // namespace fleet
