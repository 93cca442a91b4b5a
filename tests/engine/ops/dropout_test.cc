#include <gtest/gtest.h>

#include "ops/dropout_mask.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_dropout(const std::vector<Values>& in, double p, uint64_t salt) {
  Values y = in[0];
  const size_t size = y.size() / in[1].size();
  for (size_t i = 0; i < y.size(); ++i) {
    const auto key = static_cast<uint64_t>(static_cast<int64_t>(in[1][i / size]));
    const double unit = dropout_bits(dropout_stream(key, salt), i % size) * 0x1p-32;
    y[i] = unit < p ? 0 : y[i] / (1 - p);
  }
  return {y};
}

OpCheck check_of_dropout(const Shape& shape, Values keys, double p, int64_t salt = 3) {
  const auto samples = static_cast<int64_t>(keys.size());
  return {.type = "dropout",
          .attributes = {{"p", p}, {"salt", salt}},
          .inputs = {{.shape = shape, .low = 1, .high = 2},
                     {.shape = {samples}, .values = std::move(keys), .dtype = DType::kInt64}},
          .reference = [=](const std::vector<Values>& in) {
            return naive_dropout(in, p, static_cast<uint64_t>(salt));
          }};
}

// y of ones: 0 or 1 / (1 - p).
Values mask(const Shape& shape, Values keys, double p, int64_t salt = 3) {
  OpCheck check = check_of_dropout(shape, std::move(keys), p, salt);
  check.inputs[0].values = Values(shape.elements(), 1);
  check.check_gradient = false;
  return check_op(check)[0];
}

double kept(const Values& mask) {
  return static_cast<double>(
             std::count_if(mask.begin(), mask.end(), [](double v) { return v > 0; })) /
         static_cast<double>(mask.size());
}

TEST(Dropout, Training_MatchesReference) {
  check_op(check_of_dropout({3, 4, 5}, {11, -7, 1e15}, 0.3));
  check_op(check_of_dropout({2, 9}, {1, 2}, 0));
}

// Every element has the mask of its sample's first one, whatever the layout.
TEST(Dropout, WholeSamples_MatchesReference) {
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{3}, Shape{3, 5, 2, 2}, Shape{3, 8, 3, 1}}) {
    OpCheck check = check_of_dropout(shape, {11, -7, 1e15}, 0.5);
    check.attributes.set("whole_samples", true);
    check.reference = [](const std::vector<Values>& in) {
      Values y = in[0];
      const size_t size = y.size() / in[1].size();
      for (size_t n = 0; n < in[1].size(); ++n) {
        const double first = naive_dropout({{1}, {in[1][n]}}, 0.5, 3)[0][0];
        for (size_t i = 0; i < size; ++i) y[n * size + i] *= first;
      }
      return std::vector<Values>{y};
    };
    check_op(check);
  }
}

TEST(Dropout, SamplesAcrossThreads_MatchesReference) {
  OpCheck check = check_of_dropout({7, 5001}, {1, 2, 3, 4, 5, 6, 7}, 0.5);
  check.check_gradient = false;
  check_op(check);
}

TEST(Dropout, EverythingDropped_IsZero) { EXPECT_EQ(kept(mask({2, 100}, {1, 2}, 1)), 0); }

TEST(Dropout, ManyElements_KeepsTheShareAskedFor) {
  for (const double p : {0.1, 0.5, 0.9}) {
    EXPECT_NEAR(kept(mask({1, 100000}, {42}, p)), 1 - p, 0.006) << "4 standard deviations";
  }
}

TEST(Dropout, BatchSplit_LeavesTheMaskOfEachSample) {
  const Values whole = mask({4, 50}, {10, 20, 30, 40}, 0.5);
  const Values first = mask({2, 50}, {40, 10}, 0.5), second = mask({2, 50}, {30, 20}, 0.5);
  const auto row = [](const Values& all, int n) {
    return Values(all.begin() + 50 * n, all.begin() + 50 * (n + 1));
  };
  EXPECT_EQ(row(whole, 0), row(first, 1));
  EXPECT_EQ(row(whole, 3), row(first, 0));
  EXPECT_EQ(row(whole, 1), row(second, 1));
  EXPECT_EQ(row(whole, 2), row(second, 0));
}

TEST(Dropout, OtherSaltOrKey_GivesAnotherMask) {
  const Values one = mask({1, 1000}, {5}, 0.5, 0);
  for (const Values& other : {mask({1, 1000}, {5}, 0.5, 1), mask({1, 1000}, {6}, 0.5, 0)}) {
    int same = 0;
    for (size_t i = 0; i < one.size(); ++i) same += one[i] == other[i];
    EXPECT_NEAR(same, 500, 64) << "4 standard deviations";
  }
}

TEST(Dropout, IsTest_IsTheIdentity) {
  check_op({.type = "dropout",
            .attributes = {{"p", 0.7}, {"is_test", true}},
            .inputs = {{.shape = {4, 5}}},
            .reference = [](const std::vector<Values>& in) { return std::vector<Values>{in[0]}; }});
}

TEST(Dropout, NoKeysInTraining_IsRefused) {
  OpCheck check = check_of_dropout({2, 3}, {1, 2}, 0.5);
  check.inputs[1].present = false;
  check.reference = [](const std::vector<Values>& in) { return std::vector<Values>{in[0]}; };
  EXPECT_THROW(check_op(check), Error);
}

}  // namespace
}  // namespace fleet
