// There are only cuda kernels: on the CPU these tests are skipped.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

class FcGelu : public testing::Test {
 protected:
  void SetUp() override {
    if (op_device().backend() != "cuda") GTEST_SKIP() << "no kernel on " << op_device().name();
  }
};

double inner(double x) { return std::sqrt(2 / std::acos(-1)) * (x + 0.044715 * x * x * x); }
double gelu(double x) { return x / 2 * (1 + std::tanh(inner(x))); }
double gelu_slope(double x) {
  const double t = std::tanh(inner(x));
  const double slope = std::sqrt(2 / std::acos(-1)) * (1 + 3 * 0.044715 * x * x);
  return (1 + t) / 2 + x / 2 * (1 - t * t) * slope;
}

// sum over k of a[row, k] b[k, column], with b stored as it is or transposed.
Values product(const Values& a, const Values& b, int64_t rows, int64_t depth, int64_t columns,
               bool transposed) {
  Values d(rows * columns);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < depth; ++k) {
        d[r * columns + c] += a[r * depth + k] * b[transposed ? c * depth + k : k * columns + c];
      }
    }
  }
  return d;
}

void check_fc_gelu(const Shape& x, int64_t out, bool bias) {
  SCOPED_TRACE(x.text());
  const int64_t in = x[x.rank() - 1], rows = x.elements() / in;
  check_op({.type = "fc_gelu",
            .attributes = {{"axis", int64_t{x.rank() - 1}}},
            .inputs = {{.shape = x, .low = -2, .high = 2},
                       {.shape = {out, in}, .kind = VarKind::kParameter},
                       {.shape = {out}, .kind = VarKind::kParameter, .present = bias}},
            .reference =
                [=](const std::vector<Values>& inputs) {
                  Values before = product(inputs[0], inputs[1], rows, in, out, true);
                  for (size_t i = 0; bias && i < before.size(); ++i) {
                    before[i] += inputs[2][i % out];
                  }
                  Values y = before;
                  for (double& value : y) value = gelu(value);
                  return std::vector<Values>{y, before};
                },
            .check_gradient = false});
}

TEST_F(FcGelu, Forward_MatchesReference) {
  check_fc_gelu({3, 5, 16}, 24, true);
  check_fc_gelu({7, 8}, 16, false);
  check_fc_gelu({4, 9}, 17, true);  // rows that are not whole 16 bytes
}

TEST_F(FcGelu, DataGradient_MatchesReference) {
  for (const int64_t in : {16, 13}) {
    const int64_t rows = 6, out = 8;
    check_op({.type = "fc_gelu_data_grad",
              .inputs = {{.shape = {out, in}, .kind = VarKind::kParameter},
                         {.shape = {2, 3, out}},
                         {.shape = {2, 3, in}, .low = -3, .high = 3}},
              .reference =
                  [=](const std::vector<Values>& inputs) {
                    Values dx = product(inputs[1], inputs[0], rows, out, in, false);
                    for (size_t i = 0; i < dx.size(); ++i) dx[i] *= gelu_slope(inputs[2][i]);
                    return std::vector<Values>{dx};
                  },
              .check_gradient = false});
  }
}

}  // namespace
}  // namespace fleet
