// The parts of a batch normalisation (ops/batch_norm_sums.cc, ops/batch_norm_finalize.cc), each
// against a reference, and put together by the pass sync_batch_norm against the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "passes/backward.h"
#include "passes/pass.h"
#include "tensor/float16.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

CheckInput channels(int64_t count, double low = -1, double high = 1) {
  return {.shape = {count}, .dtype = DType::kFloat32, .low = low, .high = high};
}

size_t channel_of(const Shape& image, size_t element) {
  return element / (image.elements() / image[0] / image[1]) % image[1];
}

double channel(const Shape& image, const Values& values, size_t element) {
  return values[channel_of(image, element)];
}

void check_sums(const Shape& x) {
  check_op({.type = "batch_norm_sums",
            .inputs = {{.shape = x, .low = 4, .high = 6}, channels(x[1], 4, 6)},
            .reference =
                [=](const std::vector<Values>& in) {
                  std::vector<Values> out(2, Values(x[1]));
                  for (size_t i = 0; i < in[0].size(); ++i) {
                    const double difference = in[0][i] - channel(x, in[1], i);
                    out[0][channel_of(x, i)] += difference;
                    out[1][channel_of(x, i)] += difference * difference;
                  }
                  return out;
                },
            .check_gradient = false});
}

TEST(BatchNormSums, MatchReference) {
  check_sums({3, 5, 4, 3});
  check_sums({2, 24, 9, 9});
  check_sums({3, 4, 6});
  check_sums({16, 7});
}

void check_apply(const Shape& x, bool adds, bool relu) {
  const double epsilon = 1e-3;
  check_op({.type = "batch_norm_apply",
            .attributes = {{"epsilon", epsilon}, {"activation", std::string(relu ? "relu" : "")}},
            .inputs = {{.shape = x},
                       channels(x[1], 0.5, 2),
                       channels(x[1]),
                       channels(x[1]),
                       channels(x[1], 0.5, 2),
                       {.shape = x, .present = adds}},
            .reference =
                [=](const std::vector<Values>& in) {
                  Values y(x.elements());
                  for (size_t i = 0; i < y.size(); ++i) {
                    const double inverse = 1 / std::sqrt(channel(x, in[4], i) + epsilon);
                    const double normal = (in[0][i] - channel(x, in[3], i)) * inverse;
                    y[i] = channel(x, in[1], i) * normal + channel(x, in[2], i);
                    if (adds) y[i] += in[5][i];
                    if (relu) y[i] = std::max(y[i], 0.0);
                  }
                  return std::vector<Values>{y};
                },
            .check_gradient = false});
}

TEST(BatchNormApply, MatchesReference) {
  for (const Shape& x : {Shape{3, 5, 4, 3}, Shape{2, 24, 9, 9}}) {
    check_apply(x, false, false);
    check_apply(x, false, true);
    check_apply(x, true, true);
  }
}

void check_gradient_sums(const Shape& x, int gradients) {
  const double epsilon = 1e-3;
  OpCheck check{.type = "batch_norm_gradient_sums",
                .attributes = {{"epsilon", epsilon}},
                .inputs = {{.shape = x},
                           channels(x[1]),
                           channels(x[1], 0.5, 2),
                           {.shape = {1}, .dtype = DType::kUInt8, .present = false}},
                .reference =
                    [=](const std::vector<Values>& in) {
                      std::vector<Values> out(4, Values(x[1]));
                      Values dz(x.elements());
                      for (size_t i = 0; i < dz.size(); ++i) {
                        const size_t c = channel_of(x, i);
                        for (int k = 0; k < gradients; ++k) dz[i] += in[4 + k][i];
                        const double inverse = 1 / std::sqrt(in[2][c] + epsilon);
                        out[0][c] += dz[i] * (in[0][i] - in[1][c]) * inverse;
                        out[1][c] += dz[i];
                      }
                      out[2] = out[0];
                      out[3] = out[1];
                      out.push_back(dz);
                      return out;
                    },
                .check_gradient = false};
  for (int k = 0; k < gradients; ++k) check.inputs.push_back({.shape = x});
  check_op(check);
}

TEST(BatchNormGradientSums, MatchReference) {
  for (const int gradients : {1, 2, 3}) {
    check_gradient_sums({3, 5, 4, 3}, gradients);
    check_gradient_sums({2, 24, 9, 9}, gradients);
  }
}

void check_finalize(bool shifted) {
  const double epsilon = 1e-3, momentum = 0.25;
  const int64_t count = 50;
  check_op({.type = "batch_norm_finalize",
            .attributes = {{"epsilon", epsilon},
                           {"momentum", momentum},
                           {"count", count},
                           {"shifted", shifted}},
            .inputs = {channels(5, -20, 20), channels(5, 60, 90), channels(5, 0.5, 2), channels(5),
                       channels(5), channels(5, 0.5, 2)},
            .reference =
                [=](const std::vector<Values>& in) {
                  std::vector<Values> out(7, Values(5));
                  for (int c = 0; c < 5; ++c) {
                    const double difference = in[0][c] / count;
                    const double mean = difference + (shifted ? in[4][c] : 0);
                    const double variance = in[1][c] / count - difference * difference;
                    const double inverse = 1 / std::sqrt(variance + epsilon);
                    out[0][c] = (1 - momentum) * in[4][c] + momentum * mean;
                    out[1][c] =
                        (1 - momentum) * in[5][c] + momentum * variance * count / (count - 1.0);
                    out[2][c] = mean;
                    out[3][c] = variance;
                    out[4][c] = inverse;
                    out[5][c] = in[2][c] * inverse;
                    out[6][c] = in[3][c] - mean * in[2][c] * inverse;
                  }
                  return out;
                },
            .check_gradient = false});
}

TEST(BatchNormFinalize, Sums_BecomeStatisticsAndOneFactorAndConstant) { check_finalize(false); }
TEST(BatchNormFinalize, SumsOfDifferences_AreFromTheRunningMean) { check_finalize(true); }

void check_data_gradient(int64_t count, double rows) {
  const Shape x{3, 8, 2, 3};
  const double epsilon = 1e-3;
  check_op({.type = "batch_norm_data_grad",
            .attributes = {{"epsilon", epsilon}, {"count", count}},
            .inputs = {{.shape = x},
                       channels(8, 0.5, 2),
                       channels(8),
                       channels(8, 0.5, 2),
                       channels(8),
                       channels(8),
                       {.shape = x},
                       {.shape = {1}, .dtype = DType::kUInt8, .present = false}},
            .reference =
                [=](const std::vector<Values>& in) {
                  Values dx(x.elements());
                  for (size_t i = 0; i < dx.size(); ++i) {
                    const double inverse = 1 / std::sqrt(channel(x, in[3], i) + epsilon);
                    const double normal = (in[0][i] - channel(x, in[2], i)) * inverse;
                    dx[i] = channel(x, in[1], i) * inverse *
                            (in[6][i] - channel(x, in[5], i) / rows -
                             normal * channel(x, in[4], i) / rows);
                  }
                  return std::vector<Values>{dx};
                },
            .check_gradient = false});
}

TEST(BatchNormDataGrad, MatchesReference) { check_data_gradient(0, 18); }
TEST(BatchNormDataGrad, SumsOverMoreRanks_AreDividedByAllTheirValues) {
  check_data_gradient(36, 36);
}

// Two normalisations behind one another, the gradient of the first's result a sum.
struct Net {
  Program program;
  SectionId forward = program.add_section("forward", {});
  std::vector<VarId> wanted;  // what is compared

  Net(bool relu, bool adds, DType dtype) {
    const Shape image{2, 8, 5, 3};
    const VarId x = value("x", image, dtype), z = value("z", image, dtype);
    const VarId first = norm("first", x, kNoVar, relu);
    const VarId second = norm("second", first, adds ? z : kNoVar, relu || adds);
    const VarId y = program.emit(forward, "elementwise_add", {first, second})[0];
    const VarId dy = program.emit(forward, "cast", {program.state("dy", image, random(-1, 1))},
                                  {{"to", std::string(name_of(dtype))}})[0];
    append_backward_from(program, forward, {{y, dy}}, leaves);
    run_pass("fuse_gradient_sums", program, {});
    wanted.push_back(y);
    for (VarId leaf : leaves) {
      if (program.gradient(leaf) != kNoVar) wanted.push_back(program.gradient(leaf));
    }
  }

  // As the pass makes it for two ranks, without the other one.
  void cut() {
    const GroupId group = program.add_group({.name = "batch norm", .ranks = {0, 1}});
    ASSERT_TRUE(
        run_pass("sync_batch_norm", program, {.ranks = 2}, {{"communicator", int64_t{group}}}));
    std::erase_if(program.ops(), [](const Op& op) { return op.type() == "all_reduce"; });
    for (Op& op : program.ops()) {
      if (!op.attributes.has("count")) continue;
      op.attributes.set("count", op.attributes.integer("count") / 2);
    }
  }

  std::vector<std::vector<double>> results() {
    Executor executor(plan_program(program, wanted, op_plan_options()), op_device(), nullptr);
    executor.initialize(5);
    executor.run({});
    std::vector<std::vector<double>> all;
    for (VarId id : wanted) {
      std::vector<double>& values = all.emplace_back();
      const auto append = [&](const auto& from) { values.assign(from.begin(), from.end()); };
      switch (program.var(id).dtype) {
        case DType::kBFloat16:
          append(executor.values<BFloat16>(id));
          break;
        default:
          append(executor.values<float>(id));
      }
    }
    return all;
  }

 private:
  static Init random(double low, double high) { return {Init::kUniform, low, high}; }

  VarId value(const std::string& name, const Shape& shape, DType dtype) {
    leaves.push_back(program.state(name, shape, random(-1, 3)));
    return program.emit(forward, "cast", {leaves.back()}, {{"to", std::string(name_of(dtype))}})[0];
  }

  VarId norm(const std::string& name, VarId x, VarId z, bool relu) {
    const Shape channels{program.var(x).shape[1]};
    std::vector<VarId> in = {x};
    for (const auto& [suffix, low, high] : {std::tuple{".scale", 0.5, 1.5},
                                            {".bias", -0.5, 0.5},
                                            {".mean", -1., 1.},
                                            {".variance", 0.5, 2.}}) {
      in.push_back(program.state(name + suffix, channels, random(low, high)));
    }
    leaves.insert(leaves.end(), {in[1], in[2]});
    wanted.insert(wanted.end(), {in[3], in[4]});
    if (z != kNoVar) in.push_back(z);
    std::vector<VarId> out = {program.temporary(name + ".y"), in[3], in[4]};
    for (const char* suffix : {".saved_mean", ".saved_variance", ".mask"}) {
      out.push_back(program.temporary(name + suffix));
    }
    program.append(forward, z == kNoVar ? "batch_norm" : "fused_bn_add_activation", in, out,
                   {{"activation", std::string(relu ? "relu" : "")}});
    return out[0];
  }

  std::vector<VarId> leaves;
};

void expect_close(const std::vector<std::vector<double>>& results,
                  const std::vector<std::vector<double>>& expected, double tolerance) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].size(), expected[i].size());
    double largest = 0, worst = 0;
    for (size_t k = 0; k < results[i].size(); ++k) {
      largest = std::max(largest, std::abs(expected[i][k]));
      worst = std::max(worst, std::abs(results[i][k] - expected[i][k]));
    }
    EXPECT_GT(largest, 0) << i;
    EXPECT_LE(worst, tolerance * largest) << i;
  }
}

TEST(SyncBatchNorm, NormalisationInParts_ComputesTheSame) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    if (std::ranges::find(op_variants(), dtype, &OpVariant::dtype) == op_variants().end()) continue;
    for (const auto& [relu, adds] : {std::pair{false, false}, {true, false}, {true, true}}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + (relu ? " relu" : "") + (adds ? " z" : ""));
      Net whole(relu, adds, dtype), parts(relu, adds, dtype);
      parts.cut();
      for (const Op& op : parts.program.ops()) {
        EXPECT_FALSE(op.type() == "batch_norm" || op.type() == "fused_bn_add_activation_grad");
      }
      expect_close(parts.results(), whole.results(), dtype == DType::kFloat32 ? 2e-5 : 0.03);
    }
  }
}

}  // namespace
}  // namespace fleet
