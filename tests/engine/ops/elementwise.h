// Shared by the tests of elementwise operations with two operands.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ops/broadcast.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {

struct Operands {
  Shape x, y;
  int64_t axis = -1;
};

// Shapes that spread in each way there is.
inline std::vector<Operands> spreads() {
  return {{{4, 6}, {6}},          {{4, 6}, {4}, 0},
          {{2, 3, 4, 5}, {3}, 1}, {{2, 3, 4, 5}, {3, 4}, 1},
          {{2, 3, 4, 5}, {5}},    {{2, 3, 4, 5}, {3, 1, 1}},
          {{2, 3, 4, 5}, {1}},    {{2, 3, 4, 5}, {1, 3, 1, 1}},
          {{700, 40}, {40}},      {{3, 2, 90, 91}, {2}, 1},
          {{1, 7}, {7}},          {{3, 5, 4, 2}, {3, 5, 1, 1}, 0},
          {{2, 8, 3, 1}, {2}, 0}, {{3, 16, 20, 30}, {3, 16}, 0}};
}

// The index within y of element i of x: y's axis d lies at x's axis + d, and stays at 0 where y
// is 1.
inline int64_t index_in_y(const Operands& operands, int64_t i) {
  const Shape &x = operands.x, &y = operands.y;
  const int64_t start = operands.axis == -1 ? x.rank() - y.rank() : operands.axis;
  int64_t index = 0, stride = 1;
  for (int d = x.rank() - 1; d >= 0; --d) {
    const int64_t coordinate = i % x[d];
    i /= x[d];
    const int64_t own = d - start;
    if (own < 0 || own >= y.rank()) continue;
    index += (y[static_cast<int>(own)] == 1 ? 0 : coordinate) * stride;
    stride *= y[static_cast<int>(own)];
  }
  return index;
}

template <typename Function>
std::vector<Values> naive_elementwise(const Operands& operands, const std::vector<Values>& in,
                                      Function function) {
  Values out(in[0].size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = function(in[0][i], in[1][index_in_y(operands, static_cast<int64_t>(i))]);
  }
  return {out};
}

// An operation of two operands, y spread over x; its test instantiates ElementwiseTest for it
// (elementwise_test.cc).
struct BinaryOperation {
  std::string type;
  double (*function)(double x, double y);
};
class ElementwiseTest : public testing::TestWithParam<BinaryOperation> {};

// Finite differences of every element would take long where there are many.
inline bool small(const Operands& operands) { return operands.x.elements() < 1000; }

}  // namespace fleet
