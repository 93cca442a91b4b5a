#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_soft_loss(const std::vector<Values>& in, size_t classes, bool divergence,
                                    double smoothing) {
  Values loss;
  for (size_t n = 0; n < in[0].size() / classes; ++n) {
    const double* x = &in[0][n * classes];
    const double largest = *std::max_element(x, x + classes);
    double sum = 0, total = 0;
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
    for (size_t c = 0; c < classes; ++c) {
      const double t =
          in[1][n * classes + c] * (1 - smoothing) + smoothing / static_cast<double>(classes);
      if (t == 0) continue;
      total += t * ((divergence ? std::log(t) : 0) - (x[c] - largest - std::log(sum)));
    }
    loss.push_back(total);
  }
  return {loss};
}

void check(int64_t samples, int64_t classes, const Values& targets, bool divergence,
           double smoothing) {
  check_op({.type = "soft_cross_entropy",
            .attributes = {{"divergence", divergence}, {"label_smoothing", smoothing}},
            .inputs = {{.shape = {samples, classes}, .low = -3, .high = 3},
                       {.shape = {samples, classes},
                        .values = targets,
                        .dtype = DType::kFloat32,
                        .differentiate = false}},
            .reference = [=](const std::vector<Values>& in) {
              return naive_soft_loss(in, static_cast<size_t>(classes), divergence, smoothing);
            }});
}

TEST(SoftCrossEntropy, Shares_MatchReference) {
  const Values targets = {0.5, 0.25, 0.25, 0, 1, 0, 0.125, 0.125, 0.75};
  for (const bool divergence : {false, true}) {
    check(3, 3, targets, divergence, 0);
    check(3, 3, targets, divergence, 0.1);
  }
}

// A long row is another kernel on GPUs.
TEST(SoftCrossEntropy, ManyClasses_MatchReference) {
  check(1, 1030, Values(1030, 1.0 / 1024), false, 0);
}

TEST(SoftCrossEntropy, LargeLogits_StayFinite) {
  check_op({.type = "soft_cross_entropy",
            .inputs = {{.shape = {1, 3}, .values = {1e4, -1e4, 0}},
                       {.shape = {1, 3},
                        .values = {0.5, 0.5, 0},
                        .dtype = DType::kFloat32,
                        .differentiate = false}},
            .reference = [](const std::vector<Values>&) { return std::vector<Values>{{1e4}}; },
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
