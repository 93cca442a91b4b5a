#include "tensor/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fleet {
namespace {

template <typename T>
float round_trip(float value) {
  return static_cast<float>(T(value));
}

template <typename T>
T from_bits(uint16_t bits) {
  T value;
  value.bits = bits;
  return value;
}

// The type's values around a float in double, found by looking at all of them.
template <typename T>
void expect_every_value_survives() {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bits<T>(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(round_trip<T>(value))) << std::hex << bits;
    } else {
      EXPECT_EQ(T(value).bits, bits);
    }
  }
}

// Between neighbours of the same sign: the nearer one, and of two as near the even one.
template <typename T>
void expect_rounds_to_nearest_even(uint16_t largest) {
  for (uint32_t bits = 0; bits < largest; ++bits) {
    const double low = from_bits<T>(static_cast<uint16_t>(bits));
    const double high = from_bits<T>(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);
    const uint32_t even = bits + bits % 2;
    EXPECT_EQ(T(middle).bits, even) << std::hex << bits;
    EXPECT_EQ(T(-middle).bits, even | 0x8000) << std::hex << bits;
    if (middle == 0) continue;  // below float's subnormals
    EXPECT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(T(std::nextafter(middle, INFINITY)).bits, bits + 1);
  }
}

TEST(BFloat16, EveryValue_SurvivesFloat) { expect_every_value_survives<BFloat16>(); }
TEST(Float16, EveryValue_SurvivesFloat) { expect_every_value_survives<Float16>(); }

TEST(BFloat16, BetweenTwoValues_RoundsToNearestEven) {
  expect_rounds_to_nearest_even<BFloat16>(0x7f7f);
}
TEST(Float16, BetweenTwoValues_RoundsToNearestEven) {
  expect_rounds_to_nearest_even<Float16>(0x7bff);
}

TEST(Float16, KnownPatterns_AreIeeeBinary16) {
  EXPECT_EQ(Float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(Float16(-2.0f).bits, 0xc000);
  EXPECT_EQ(Float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Float16(0x1p-24f).bits, 0x0001);  // the smallest subnormal
}

TEST(Float16, TooLarge_BecomesInfinity) {
  EXPECT_EQ(round_trip<Float16>(65519.0f), 65504.0f);
  EXPECT_EQ(round_trip<Float16>(65520.0f), INFINITY);
  EXPECT_EQ(round_trip<Float16>(-1e30f), -INFINITY);
  EXPECT_EQ(round_trip<Float16>(INFINITY), INFINITY);
}

TEST(BFloat16, TooLarge_BecomesInfinity) {
  EXPECT_EQ(round_trip<BFloat16>(std::numeric_limits<float>::max()), INFINITY);
  EXPECT_EQ(round_trip<BFloat16>(-0x1.fep127f), -0x1.fep127f);  // the largest there is
}

TEST(BFloat16, Nan_StaysNan) {
  EXPECT_TRUE(std::isnan(round_trip<BFloat16>(NAN)));
  // A NaN whose payload would be cut off must not become infinity.
  EXPECT_TRUE(std::isnan(round_trip<BFloat16>(__builtin_bit_cast(float, 0x7f800001u))));
}

}  // namespace
}  // namespace fleet
