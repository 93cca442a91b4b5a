#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/ops/feature_pairs.h"

namespace fleet {
namespace {

OpCheck check_of_interaction(const Shape& x) {
  return {.type = "fm_interaction",
          .inputs = {{.shape = x}},
          .reference = [=](const std::vector<Values>& in) {
            Values y;
            for (const Values& own : products_of_pairs(x, in[0])) {
              y.push_back(std::accumulate(own.begin(), own.end(), 0.0));
            }
            return std::vector<Values>{y};
          }};
}

TEST(FmInteraction, Features_GiveTheSumOfAllPairs) {
  check_op(check_of_interaction({3, 5, 4}));
  check_op(check_of_interaction({2, 7, 9}));
  check_op(check_of_interaction({2, 3, 70}));  // more columns than are summed at a time
}

TEST(FmInteraction, OneFeature_HasNoPair) { check_op(check_of_interaction({4, 1, 3})); }

TEST(FmInteraction, WrongRank_IsRefused) {
  OpCheck wrong = check_of_interaction({2, 3, 4});
  wrong.inputs[0].shape = {2, 3};
  EXPECT_THROW(check_op(wrong), Error);
}

}  // namespace
}  // namespace fleet
