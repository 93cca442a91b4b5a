#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

void expect_counts(int64_t k, const Shape& shape, Values logits, Values labels, Values weights,
                   Values counts) {
  const auto samples = static_cast<int64_t>(labels.size());
  check_op(
      {.type = "accuracy",
       .attributes = {{"k", k}},
       .inputs = {{.shape = shape, .values = std::move(logits)},
                  {.shape = {samples}, .values = std::move(labels), .dtype = DType::kInt64},
                  {.shape = {samples}, .values = std::move(weights), .dtype = DType::kFloat32}},
       .reference = [&](const std::vector<Values>&) { return std::vector<Values>{counts}; },
       .tolerance = 0,
       .check_gradient = false});
}

TEST(Accuracy, Ranks_AreCounted) {
  expect_counts(2, {3, 4}, {1, 2, 3, 4, /**/ 1, 2, 3, 4, /**/ 1, 2, 3, 4}, {3, 2, 1}, {1, 1, 1},
                {1, 2, 3});
}

TEST(Accuracy, Weights_PaddedSamplesDoNotCount) {
  expect_counts(2, {3, 3}, {9, 1, 1, /**/ 9, 1, 1, /**/ 1, 9, 2}, {0, 0, 2}, {1, 0, 0.5},
                {1, 1.5, 1.5});
}

TEST(Accuracy, Ties_SmallerIndexComesFirst) {
  expect_counts(2, {3, 3}, {5, 5, 5, /**/ 5, 5, 5, /**/ 5, 5, 5}, {0, 1, 2}, {1, 1, 1}, {1, 2, 3});
}

TEST(Accuracy, MoreThanThereAreClasses_CountsAll) {
  expect_counts(5, {2, 2}, {1, 2, /**/ 1, 2}, {0, 1}, {1, 1}, {1, 2, 2});
}

TEST(Accuracy, UndefinedLogitsAndLabelsOutOfRange_NeverHit) {
  expect_counts(2, {4, 2}, {NAN, NAN, /**/ 1, 2, /**/ 1, 2, /**/ NAN, 2}, {0, -1, 2, 1},
                {1, 1, 1, 1}, {1, 1, 4});
}

}  // namespace
}  // namespace fleet
