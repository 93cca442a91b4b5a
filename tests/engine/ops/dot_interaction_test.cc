#include <gtest/gtest.h>

#include "tests/engine/ops/feature_pairs.h"

namespace fleet {
namespace {

OpCheck check_of_products(const Shape& x) {
  return {.type = "dot_interaction",
          .inputs = {{.shape = x}},
          .reference = [=](const std::vector<Values>& in) {
            Values y;
            for (const Values& own : products_of_pairs(x, in[0])) {
              y.insert(y.end(), own.begin(), own.end());
            }
            return std::vector<Values>{y};
          }};
}

TEST(DotInteraction, Features_GiveTheRowsBelowTheDiagonal) {
  check_op(check_of_products({3, 2, 4}));
  check_op(check_of_products({2, 6, 5}));
  check_op(check_of_products({2, 3, 70}));  // more columns than are summed at a time
}

TEST(DotInteraction, ManyFeatures_FindTheirPairs) { check_op(check_of_products({1, 27, 3})); }

TEST(DotInteraction, OneFeature_IsRefused) {
  OpCheck wrong = check_of_products({2, 2, 4});
  wrong.inputs[0].shape = {2, 1, 4};
  EXPECT_THROW(check_op(wrong), Error);
}

}  // namespace
}  // namespace fleet
