#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

OpCheck check_of_gated(const std::string& type, const Attributes& attributes, const Shape& shape,
                       const std::function<double(double)>& activation) {
  const size_t half = static_cast<size_t>(shape[shape.rank() - 1]) / 2;
  return {.type = type,
          .attributes = attributes,
          .inputs = {{.shape = shape, .low = -4, .high = 4}},
          .reference = [=](const std::vector<Values>& in) {
            Values y(in[0].size() / 2);
            for (size_t i = 0; i < y.size(); ++i) {
              const size_t gate = i / half * 2 * half + i % half;
              y[i] = activation(in[0][gate]) * in[0][gate + half];
            }
            return std::vector<Values>{y};
          }};
}

// Short rows, packs, and rows of several threads.
void check_gated(const std::string& type, const Attributes& attributes,
                 const std::function<double(double)>& activation) {
  check_op(check_of_gated(type, attributes, {2, 3, 10}, activation));
  check_op(check_of_gated(type, attributes, {3, 32}, activation));
  OpCheck large = check_of_gated(type, attributes, {3, 2 * 8191}, activation);
  large.check_gradient = false;
  check_op(large);
}

TEST(Swiglu, Halves_MatchReference) {
  check_gated("swiglu", {}, [](double x) { return x / (1 + std::exp(-x)); });
}

TEST(Geglu, BothForms_MatchReference) {
  check_gated("geglu", {}, [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); });
  check_gated("geglu", {{"approximate", true}}, [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
}

TEST(Swiglu, OddRow_IsRefused) {
  EXPECT_THROW(check_op(check_of_gated("swiglu", {}, {2, 7}, [](double x) { return x; })), Error);
}

}  // namespace
}  // namespace fleet
