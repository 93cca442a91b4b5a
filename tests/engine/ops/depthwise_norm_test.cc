// Depthwise convolutions with the batch normalizations around them, and the pass that makes them.
// There are only cuda kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "passes/backward.h"
#include "passes/pass.h"
#include "tests/engine/ops/naive_convolution.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

struct DepthwiseCase {
  int64_t channels, height, width, size, stride;
  std::string activation = {};

  NaiveConvolution naive() const {
    return {.x = {2, channels, height, width},
            .weight = {channels, 1, size, size},
            .strides = {stride, stride},
            .paddings = {size / 2, size / 2},
            .dilations = {1, 1},
            .groups = channels};
  }
  Attributes attributes() const {
    return {{"strides", std::vector<int64_t>{stride, stride}},
            {"paddings", std::vector<int64_t>{size / 2, size / 2}},
            {"groups", channels},
            {"norm_activation", activation}};
  }
};

double activated(const std::string& activation, double u) {
  if (activation == "relu") return std::max(u, 0.0);
  if (activation == "relu6") return std::clamp(u, 0.0, 6.0);
  if (activation == "hardswish") return u * std::clamp(u + 3, 0.0, 6.0) / 6;
  return u;
}
double slope_at(const std::string& activation, double u) {
  if (activation == "relu") return u > 0 ? 1 : 0;
  if (activation == "relu6") return u > 0 && u < 6 ? 1 : 0;
  if (activation == "hardswish") return u <= -3 ? 0 : (u >= 3 ? 1 : u / 3 + 0.5);
  return 1;
}

int64_t channel_of(const Shape& image, size_t i) {
  return static_cast<int64_t>(i) / (image[2] * image[3]) % image[1];
}

// activation(factor x + constant), or x.
Values seen_input(const DepthwiseCase& c, const Values& x, const Values* factor,
                  const Values* constant) {
  Values seen = x;
  for (size_t i = 0; factor && i < x.size(); ++i) {
    const int64_t channel = channel_of(c.naive().x, i);
    seen[i] = activated(c.activation, x[i] * (*factor)[channel] + (*constant)[channel]);
  }
  return seen;
}

CheckInput of_channels(const DepthwiseCase& c, double low, double high, bool present = true) {
  return {.shape = {c.channels},
          .dtype = DType::kFloat32,
          .kind = VarKind::kState,
          .differentiate = false,
          .present = present,
          .low = low,
          .high = high};
}

void check_forward(const DepthwiseCase& c, bool transforms, bool pivot) {
  const NaiveConvolution naive = c.naive();
  check_op({.type = "conv2d_sums",
            .attributes = c.attributes(),
            .inputs = {{.shape = naive.x, .low = -2, .high = 3},
                       {.shape = naive.weight},
                       of_channels(c, 1, 3, transforms),
                       of_channels(c, -1, 1, transforms),
                       of_channels(c, -1, 1, pivot)},
            .reference =
                [=](const std::vector<Values>& in) {
                  const Values x = seen_input(c, in[0], transforms ? &in[2] : nullptr, &in[3]);
                  Values y(naive.y().elements()), sum(c.channels), squares(c.channels);
                  naive.each_product(
                      [&](int64_t i, int64_t w, int64_t o) { y[o] += x[i] * in[1][w]; });
                  for (size_t i = 0; i < y.size(); ++i) {
                    const int64_t channel = channel_of(naive.y(), i);
                    const double difference = y[i] - (pivot ? in[4][channel] : 0);
                    sum[channel] += difference;
                    squares[channel] += difference * difference;
                  }
                  return std::vector<Values>{y, sum, squares};
                },
            .check_gradient = false});
}

void check_weight_gradient(const DepthwiseCase& c) {
  const NaiveConvolution naive = c.naive();
  Attributes attributes = c.attributes();
  attributes.set("kernel", std::vector<int64_t>{c.size, c.size});
  check_op({.type = "conv2d_sums_weight_grad",
            .attributes = attributes,
            .inputs = {{.shape = naive.x, .low = -2, .high = 3},
                       {.shape = naive.y()},
                       of_channels(c, 1, 3),
                       of_channels(c, -1, 1)},
            .reference =
                [=](const std::vector<Values>& in) {
                  const Values x = seen_input(c, in[0], &in[2], &in[3]);
                  Values dweight(naive.weight.elements());
                  naive.each_product(
                      [&](int64_t i, int64_t w, int64_t o) { dweight[w] += x[i] * in[1][o]; });
                  return std::vector<Values>{dweight};
                },
            .check_gradient = false});
}

void check_data_gradient(const DepthwiseCase& c) {
  const NaiveConvolution naive = c.naive();
  check_op({.type = "conv2d_relu_norm_grad",
            .attributes = c.attributes(),
            .inputs = {{.shape = naive.weight},
                       {.shape = naive.y()},
                       {.shape = naive.x, .low = -2, .high = 3},
                       of_channels(c, -1, 1),
                       of_channels(c, 0.5, 2),
                       of_channels(c, 1, 3),
                       of_channels(c, -1, 1)},
            .reference =
                [=](const std::vector<Values>& in) {
                  Values dz(naive.x.elements()), dscale(c.channels), dbias(c.channels);
                  naive.each_product(
                      [&](int64_t i, int64_t w, int64_t o) { dz[i] += in[0][w] * in[1][o]; });
                  for (size_t i = 0; i < dz.size(); ++i) {
                    const int64_t ch = channel_of(naive.x, i);
                    const double normal = (in[2][i] - in[3][ch]) * in[4][ch];
                    dz[i] *= slope_at(c.activation, normal * in[5][ch] + in[6][ch]);
                    dbias[ch] += dz[i];
                    dscale[ch] += dz[i] * normal;
                  }
                  return std::vector<Values>{dz, dscale, dbias};
                },
            .check_gradient = false});
}

class DepthwiseNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (op_device().backend() != "cuda") GTEST_SKIP() << "no kernel on " << op_device().name();
  }
};

// Windows of both sizes and steps, widths that leave a part of the last tile, and each activation.
const std::vector<DepthwiseCase>& depthwise_cases() {
  static const std::vector<DepthwiseCase> all = {{10, 9, 8, 3, 1, "relu6"},
                                                 {16, 7, 10, 3, 2, "hardswish"},
                                                 {18, 6, 9, 5, 1, "relu"},
                                                 {6, 9, 7, 5, 2, ""}};
  return all;
}

TEST_F(DepthwiseNorm, Forward_MatchesReference) {
  for (const DepthwiseCase& c : depthwise_cases()) check_forward(c, true, true);
}

TEST_F(DepthwiseNorm, ForwardOfAPlainInput_MatchesReference) {
  check_forward({8, 6, 5, 3, 1}, false, true);
  check_forward({8, 6, 5, 5, 2}, false, false);
}

TEST_F(DepthwiseNorm, WeightGradient_MatchesReference) {
  for (const DepthwiseCase& c : depthwise_cases()) check_weight_gradient(c);
}

TEST_F(DepthwiseNorm, DataGradient_MatchesReference) {
  for (const DepthwiseCase& c : depthwise_cases()) check_data_gradient(c);
}

// Of networks with inverted residuals: 1 x 1 convolution, normalization, depthwise convolution,
// normalization.
struct InvertedBlock {
  Program program;
  SectionId forward = program.add_section("forward", {});
  std::vector<VarId> parameters, states;
  VarId y = kNoVar, middle = kNoVar;

  VarId parameter(const std::string& name, const Shape& shape, double low, double high) {
    parameters.push_back(
        program.parameter(name, shape, {.kind = Init::kUniform, .a = low, .b = high}));
    return parameters.back();
  }

  VarId norm(const std::string& name, VarId x, const std::string& activation) {
    const Shape channels{program.var(x).shape[1]};
    const VarId scale = parameter(name + ".scale", channels, 1, 2);
    const VarId bias = parameter(name + ".bias", channels, -1, 1);
    const VarId mean = program.state(name + ".mean", channels, {});
    const VarId variance = program.state(name + ".variance", channels, {.a = 1});
    states.insert(states.end(), {mean, variance});
    std::vector<VarId> outputs = {program.temporary(name + ".out"), mean, variance};
    for (const char* suffix : {".saved_mean", ".saved_variance", ".mask"}) {
      outputs.push_back(program.temporary(name + suffix));
    }
    if (activation != "relu") outputs[5] = kNoVar;
    program.append(forward, "batch_norm", {x, scale, bias, mean, variance}, outputs,
                   {{"activation", activation}});
    return outputs[0];
  }

  InvertedBlock(const std::string& before, const std::string& after, int64_t stride) {
    const VarId x = parameter("x", {2, 8, 7, 6}, -1, 1);
    const VarId wide = program.emit(forward, "conv2d",
                                    {x, parameter("expand", {16, 8, 1, 1}, -0.5, 0.5), kNoVar})[0];
    middle = norm("before", wide, before);
    const VarId deep = program.emit(
        forward, "conv2d", {middle, parameter("depthwise", {16, 1, 3, 3}, -0.5, 0.5), kNoVar},
        {{"paddings", std::vector<int64_t>{1, 1}},
         {"strides", std::vector<int64_t>{stride, stride}},
         {"groups", int64_t{16}}})[0];
    y = norm("after", deep, after);
  }

  void differentiate() {
    const VarId bent = program.emit(forward, "tanh", {y})[0];
    append_backward(program, forward, program.emit(forward, "mean", {bent})[0], 1000);
  }

  int count(const std::string& type) const {
    return static_cast<int>(std::count_if(program.ops().begin(), program.ops().end(),
                                          [&](const Op& op) { return op.type() == type; }));
  }

  std::vector<Values> results() {
    std::vector<VarId> keep = {y};
    for (const VarId id : parameters) keep.push_back(program.gradient(id));
    keep.insert(keep.end(), states.begin(), states.end());
    Executor executor(plan_program(program, keep, op_plan_options()), op_device(), nullptr);
    executor.initialize(5);
    executor.run({});
    std::vector<Values> all;
    for (const VarId id : keep) {
      const std::vector<float> raw = executor.values<float>(id);
      all.emplace_back(raw.begin(), raw.end());
    }
    return all;
  }
};

TEST(FuseDepthwiseNorm, InvertedBlock_ComputesNoResultOfTheNormBefore) {
  for (const char* activation : {"", "relu", "relu6", "hardswish"}) {
    InvertedBlock block(activation, "silu", 1);
    block.differentiate();
    EXPECT_TRUE(run_pass("fuse_depthwise_norm", block.program, {})) << activation;
    EXPECT_EQ(block.count("conv2d_sums"), 1);
    EXPECT_EQ(block.count("conv2d_sums_weight_grad"), 1);
    EXPECT_EQ(block.count("conv2d_relu_norm_grad"), 1);
    EXPECT_EQ(block.count("batch_norm_sums"), 1);
    EXPECT_EQ(block.count("batch_norm_finalize"), 2);
    EXPECT_EQ(block.count("batch_norm_data_grad"), 1);
    EXPECT_EQ(block.count("batch_norm"), 1) << "the one after, with given statistics";
    EXPECT_FALSE(run_pass("fuse_depthwise_norm", block.program, {}));
  }
}

TEST(FuseDepthwiseNorm, SiluBefore_IsComputed) {
  InvertedBlock block("silu", "silu", 2);
  block.differentiate();
  EXPECT_TRUE(run_pass("fuse_depthwise_norm", block.program, {}));
  EXPECT_EQ(block.count("conv2d_sums"), 1);
  EXPECT_EQ(block.count("conv2d_relu_norm_grad"), 0);
  EXPECT_EQ(block.count("batch_norm"), 2);
}

TEST(FuseDepthwiseNorm, ResultOfTheNormBeforeThatIsReadElsewhere_IsComputed) {
  InvertedBlock block("relu6", "relu6", 1);
  block.program.emit(block.forward, "tanh", {block.middle});
  block.differentiate();
  EXPECT_TRUE(run_pass("fuse_depthwise_norm", block.program, {}));
  EXPECT_EQ(block.count("conv2d_relu_norm_grad"), 0);
}

// Both ranks of two agree on the statistics of both normalizations.
TEST(FuseDepthwiseNorm, SyncBatchNorm_SumsOverTheRanks) {
  InvertedBlock block("relu", "relu", 1);
  block.differentiate();
  run_pass("fuse_depthwise_norm", block.program, {});
  const GroupId group = block.program.add_group({.name = "batch norm", .ranks = {0, 1}});
  EXPECT_TRUE(
      run_pass("sync_batch_norm", block.program, {.ranks = 2}, {{"communicator", int64_t{group}}}));
  EXPECT_EQ(block.count("all_reduce"), 4);
}

TEST_F(DepthwiseNorm, FusedBlock_IsWhatItsPartsAre) {
  for (const auto& [before, after, stride] :
       {std::tuple{"relu6", "relu6", 1}, std::tuple{"hardswish", "hardswish", 2},
        std::tuple{"silu", "silu", 1}, std::tuple{"relu", "relu", 2}}) {
    InvertedBlock apart(before, after, stride), fused(before, after, stride);
    apart.differentiate();
    fused.differentiate();
    ASSERT_TRUE(run_pass("fuse_depthwise_norm", fused.program, {}));
    const std::vector<Values> expected = apart.results(), results = fused.results();
    for (size_t i = 0; i < expected.size(); ++i) {
      double largest = 0;
      for (const double value : expected[i]) largest = std::max(largest, std::abs(value));
      ASSERT_GT(largest, 0);
      for (size_t k = 0; k < expected[i].size(); ++k) {
        ASSERT_NEAR(results[i][k], expected[i][k], 1e-4 * largest)
            << before << ", result " << i << " at " << k;
      }
    }
  }
}

}  // namespace
}  // namespace fleet
