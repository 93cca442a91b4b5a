#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "exec/initialize.h"

namespace fleet {
namespace {

std::vector<float> draw(double mean, double deviation, size_t count, auto function) {
  std::vector<float> values(count);
  function(mean, deviation, SplitMix64(count), std::span<float>(values));
  return values;
}

// The bits depend neither on the code path nor on the processor.
TEST(NormalDeviates, ManyAtOnce_AreThoseOfTheCLibrary) {
  struct {
    double mean, deviation;
    size_t count;
  } const cases[] = {{0, 1, 3'000'000}, {0, 0.02, 500'000}, {1.5, -3e-3, 500'000}, {0, 1e-30, 1000},
                     {2, 0, 1000},      {0, 1, 255},        {0, 1, 257},           {0, 1, 0}};
  for (const auto& [mean, deviation, count] : cases) {
    EXPECT_TRUE(draw(mean, deviation, count, draw_normal) ==
                draw(mean, deviation, count, draw_normal_scalar))
        << mean << " " << deviation << " " << count;
  }
}

TEST(NormalDeviates, Moments_AreThoseAskedFor) {
  double sum = 0, squares = 0;
  const std::vector<float> values = draw(3, 2, 100'000, draw_normal);
  for (const float value : values) {
    sum += value;
    squares += (value - 3) * (value - 3);
  }
  EXPECT_NEAR(sum / 1e5, 3, 0.03);
  EXPECT_NEAR(squares / 1e5, 4, 0.08);
}

}  // namespace
}  // namespace fleet
