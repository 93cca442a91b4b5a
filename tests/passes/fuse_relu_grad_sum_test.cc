#include <gtest/gtest.h>

#include "models/network.h"
#include "passes/backward.h"
#include "passes/pass.h"

namespace fleet {
namespace {

int count(const Program& program, const std::string& type) {
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

TEST(FuseReluGradSum, TwoReaders_BecomeOneOperation) {
  Program program = branches(2);
  ASSERT_EQ(count(program, "relu_grad"), 1);
  const int sums = count(program, "sum");
  EXPECT_TRUE(run_pass("fuse_relu_grad_sum", program, {}));
  EXPECT_EQ(count(program, "relu_grad"), 0);
  EXPECT_EQ(count(program, "sum_relu_grad"), 1);
  EXPECT_EQ(count(program, "sum"), sums - 1);
  for (const Op& op : program.ops()) {
    if (op.type() != "sum_relu_grad") continue;
    EXPECT_EQ(op.inputs.size(), 3u);
  }
}

TEST(FuseReluGradSum, OneReader_ChangesNothing) {
  Program program = branches(1);
  EXPECT_FALSE(run_pass("fuse_relu_grad_sum", program, {}));
}

TEST(FuseReluGradSum, SumThatIsReadElsewhere_Stays) {
  Program program = branches(2);
  VarId dy = kNoVar;
  for (const Op& op : program.ops()) {
    if (op.type() == "relu_grad") dy = op.inputs[1];
  }
  program.emit(program.find_section("backward"), "scale", {dy});
  EXPECT_FALSE(run_pass("fuse_relu_grad_sum", program, {}));
}

}  // namespace
}  // namespace fleet
