// The pass fuse_resunit on the device it is for. On the CPU these tests are skipped: it has no
// kernels for what the pass makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "exec/executor.h"
#include "passes/backward.h"
#include "passes/pass.h"
#include "tensor/float16.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

constexpr DType kHalf = DType::kFloat16;

// A bottleneck in float16: three convolutions, each with a training batch normalisation, two of
// them with a relu, the last with the addition of z and a relu.
struct Block {
  Program program;
  SectionId forward = program.add_section("forward", {});
  std::vector<VarId> parameters, states;
  VarId y = kNoVar, dy = kNoVar;

  // A value in float16 whose master, in float32, is differentiated.
  VarId half(const std::string& name, const Shape& shape, double bound) {
    parameters.push_back(program.state(name, shape, {Init::kUniform, -bound, bound}));
    return program.emit(forward, "cast", {parameters.back()}, {{"to", std::string("float16")}})[0];
  }

  VarId conv_norm(VarId x, int64_t out, int64_t size, VarId z = kNoVar) {
    const int64_t in = program.var(x).shape[1];
    const std::vector<int64_t> padding = {size / 2, size / 2};
    const VarId conv = program.emit(
        forward, "conv2d",
        {x, half("weight" + std::to_string(parameters.size()), {out, in, size, size}, 0.3), kNoVar},
        {{"paddings", padding}})[0];
    const std::string name = "norm" + std::to_string(parameters.size());
    std::vector<VarId> inputs = {conv};
    for (const auto& [suffix, low, high] : {std::tuple{".scale", 0.5, 1.5},
                                            {".bias", -0.5, 0.5},
                                            {".mean", -1., 1.},
                                            {".variance", 0.5, 2.}}) {
      inputs.push_back(program.state(name + suffix, {out}, {Init::kUniform, low, high}));
    }
    parameters.insert(parameters.end(), {inputs[1], inputs[2]});
    states.insert(states.end(), {inputs[3], inputs[4]});
    std::vector<VarId> outputs = {program.temporary(name + ".out"), inputs[3], inputs[4]};
    for (const char* suffix : {".saved_mean", ".saved_variance", ".mask"}) {
      outputs.push_back(program.temporary(name + suffix));
    }
    if (z != kNoVar) inputs.push_back(z);
    program.append(forward, z == kNoVar ? "batch_norm" : "fused_bn_add_activation", inputs, outputs,
                   {{"activation", std::string("relu")}});
    return outputs[0];
  }

  Block() {
    const Shape image{2, 16, 6, 5};
    const VarId x = half("x", image, 1);
    y = conv_norm(conv_norm(conv_norm(x, 8, 1), 8, 3), 16, 1, x);
    dy = program.emit(forward, "cast", {program.state("dy", image, {Init::kUniform, -1, 1})},
                      {{"to", std::string("float16")}})[0];
    append_backward_from(program, forward, {{y, dy}}, parameters);
  }

  std::vector<std::vector<double>> results() {
    std::vector<VarId> keep = {y};
    for (VarId id : parameters) keep.push_back(program.gradient(id));
    std::vector<VarId> wanted = keep;
    wanted.insert(wanted.end(), states.begin(), states.end());
    Executor executor(plan_program(program, keep, op_plan_options()), op_device(), nullptr);
    executor.initialize(5);
    executor.run({});
    std::vector<std::vector<double>> all;
    for (VarId id : wanted) {
      std::vector<double>& values = all.emplace_back();
      if (program.var(id).dtype == kHalf) {
        for (Float16 value : executor.values<Float16>(id)) values.push_back(float{value});
      } else {
        for (float value : executor.values<float>(id)) values.push_back(value);
      }
    }
    return all;
  }
};

int count(const Program& program, const std::string& type) {
  return static_cast<int>(std::count_if(program.ops().begin(), program.ops().end(),
                                        [&](const Op& op) { return op.type() == type; }));
}

TEST(FuseResunit, Bottleneck_LosesItsInnerNormalisations) {
  Block block;
  EXPECT_TRUE(run_pass("fuse_resunit", block.program, {}));
  EXPECT_EQ(count(block.program, "conv2d_sums"), 3);
  EXPECT_EQ(count(block.program, "batch_norm_finalize"), 3);
  EXPECT_EQ(count(block.program, "batch_norm"), 0);
  EXPECT_EQ(count(block.program, "fused_bn_add_activation"), 1);
  EXPECT_EQ(count(block.program, "conv2d_sums_weight_grad"), 2);
  EXPECT_EQ(count(block.program, "conv2d_weight_grad"), 1);
  EXPECT_EQ(count(block.program, "conv2d_relu_norm_grad"), 2);
  EXPECT_EQ(count(block.program, "batch_norm_data_grad"), 2);
  EXPECT_EQ(count(block.program, "batch_norm_grad"), 0);
}

// For two ranks: without the other one, all must be as before.
void sync_alone(Program& program) {
  const GroupId group = program.add_group({.name = "batch norm", .ranks = {0, 1}});
  run_pass("sync_batch_norm", program, {.ranks = 2}, {{"communicator", int64_t{group}}});
  std::erase_if(program.ops(), [](const Op& op) { return op.type() == "all_reduce"; });
  for (Op& op : program.ops()) {
    if (!op.attributes.has("count")) continue;
    op.attributes.set("count", op.attributes.integer("count") / 2);
  }
}

TEST(FuseResunit, SyncBatchNorm_SumsWhatConvolutionsSummed) {
  Block block;
  run_pass("fuse_resunit", block.program, {});
  const GroupId group = block.program.add_group({.name = "batch norm", .ranks = {0, 1}});
  EXPECT_TRUE(
      run_pass("sync_batch_norm", block.program, {.ranks = 2}, {{"communicator", int64_t{group}}}));
  EXPECT_EQ(count(block.program, "all_reduce"), 6);
  EXPECT_EQ(count(block.program, "batch_norm_sums"), 0);
  EXPECT_EQ(count(block.program, "batch_norm_data_grad"), 3);
  EXPECT_EQ(count(block.program, "batch_norm_gradient_sums"), 1);
  for (const Op& op : block.program.ops()) {
    if (op.type() != "batch_norm_finalize") continue;
    EXPECT_EQ(op.attributes.integer("count"), 2 * 2 * 6 * 5);
  }
}

TEST(FuseResunit, ResultThatIsReadElsewhere_IsComputed) {
  Block block;
  VarId inner = kNoVar;
  for (const Op& op : block.program.ops()) {
    if (op.type() == "batch_norm") inner = op.outputs[0];
  }
  block.program.emit(block.forward, "relu", {inner});
  EXPECT_TRUE(run_pass("fuse_resunit", block.program, {}));
  EXPECT_EQ(count(block.program, "batch_norm"), 1);
  EXPECT_EQ(count(block.program, "batch_norm_grad"), 1);
  EXPECT_EQ(count(block.program, "conv2d_relu_norm_grad"), 1);
}

TEST(FuseResunit, Float32_IsLeftAlone) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  program.add_section("backward", {});
  const VarId x = program.feed("x", DType::kFloat32, {1, 8, 4, 4});
  program.emit(forward, "conv2d", {x, program.parameter("w", {8, 8, 1, 1}, {}), kNoVar});
  EXPECT_FALSE(run_pass("fuse_resunit", program, {}));
}

void expect_same(bool synced) {
  if (op_device().backend() != "cuda") GTEST_SKIP() << "no kernels on " << op_device().name();
  try {
    Block apart, fused;
    run_pass("fuse_resunit", fused.program, {});
    if (synced) sync_alone(fused.program);
    const auto expected = apart.results(), results = fused.results();
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      double largest = 0, worst = 0;
      ASSERT_EQ(results[i].size(), expected[i].size());
      for (size_t k = 0; k < results[i].size(); ++k) {
        largest = std::max(largest, std::abs(expected[i][k]));
        worst = std::max(worst, std::abs(results[i][k] - expected[i][k]));
      }
      EXPECT_GT(largest, 0) << i;
      // Factors in float16, and a few elements that fall on the other side of a relu.
      EXPECT_LE(worst, 0.02 * largest) << i;
    }
  } catch (const Error& error) {
    if (!op_may_lack_kernel() || error.code() != ErrorCode::kUnsupported) throw;
    GTEST_SKIP() << error.what();
  }
}

TEST(FuseResunit, Bottleneck_ComputesTheSame) { expect_same(false); }
TEST(FuseResunit, BottleneckWithSyncBatchNorm_ComputesTheSame) { expect_same(true); }

}  // namespace
}  // namespace fleet
