#include "comm/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace fleet {
namespace {

constexpr const char* kIsas[] = {"baseline", "avx2", "avx512"};

template <typename T>
T apply(ReduceOp op, T a, T b) {
  if (op == ReduceOp::kSum) return static_cast<T>(a + b);
  return op == ReduceOp::kMin ? std::min(a, b) : std::max(a, b);
}

template <typename T>
void expect_matches_loop(const char* isa) {
  std::mt19937 random(3);
  for (size_t count : {0, 1, 15, 16, 63, 64, 65, 1000}) {
    for (int n = 1; n <= 4; ++n) {
      std::vector<std::vector<T>> values(n, std::vector<T>(count));
      for (auto& rank : values) {
        for (T& value : rank) value = static_cast<T>(static_cast<double>(random()) / 7e6);
      }
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax}) {
        std::vector<T> expected = values[0];
        for (int k = 1; k < n; ++k) {
          for (size_t i = 0; i < count; ++i) expected[i] = apply(op, expected[i], values[k][i]);
        }
        std::vector<T> first(count + 1, T{77}), second(count + 1, T{77});
        std::vector<const void*> in;
        for (auto& rank : values) in.push_back(rank.data());
        void* out[] = {first.data(), second.data()};
        ASSERT_TRUE(reduce_elements_with(isa, DTypeOf<T>::value, op, out, 2, in.data(), n, count));
        EXPECT_EQ(first.back(), T{77});  // nothing written beyond the end
        first.pop_back(), second.pop_back();
        EXPECT_EQ(first, expected) << isa << " " << count << " elements, " << n << " ins";
        EXPECT_EQ(second, expected);
      }
    }
  }
}

class ReduceElements : public testing::TestWithParam<const char*> {
  void SetUp() override {
    if (!reduce_elements_with(GetParam(), DType::kUInt8, ReduceOp::kSum, nullptr, 0, &nothing_, 1,
                              0)) {
      GTEST_SKIP() << "this machine has no " << GetParam();
    }
  }
  const void* nothing_ = nullptr;
};

TEST_P(ReduceElements, EveryPlainType_MatchesLoop) {
  expect_matches_loop<float>(GetParam());
  expect_matches_loop<double>(GetParam());
  expect_matches_loop<int64_t>(GetParam());
  expect_matches_loop<int32_t>(GetParam());
  expect_matches_loop<uint8_t>(GetParam());
}

TEST_P(ReduceElements, OutIsIn_ReducesInPlace) {
  std::vector<float> a(1000, 1.5f), b(1000, 2.0f);
  const void* in[] = {a.data(), b.data()};
  void* out[] = {a.data(), b.data()};
  ASSERT_TRUE(
      reduce_elements_with(GetParam(), DType::kFloat32, ReduceOp::kSum, out, 2, in, 2, a.size()));
  EXPECT_EQ(a, std::vector<float>(1000, 3.5f));
  EXPECT_EQ(b, a);
}

uint16_t sum16(const char* isa, DType dtype, const std::vector<uint16_t>& values) {
  std::vector<const void*> in;
  for (const uint16_t& value : values) in.push_back(&value);
  uint16_t result = 0;
  void* out = &result;
  reduce_elements_with(isa, dtype, ReduceOp::kSum, &out, 1, in.data(),
                       static_cast<int>(values.size()), 1);
  return result;
}

TEST_P(ReduceElements, BFloat16_RoundsOnceToNearestEven) {
  const auto bf16 = [](float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); };
  // 256 has unit 2: adding 1 twice is lost if each sum is rounded, but not if it is rounded once.
  EXPECT_EQ(sum16(GetParam(), DType::kBFloat16, {bf16(256), bf16(1), bf16(1)}), bf16(258));
  EXPECT_EQ(sum16(GetParam(), DType::kBFloat16, {bf16(256), bf16(1)}), bf16(256));    // tie: even
  EXPECT_EQ(sum16(GetParam(), DType::kBFloat16, {bf16(258), bf16(1)}), bf16(260));    // tie: even
  EXPECT_EQ(sum16(GetParam(), DType::kBFloat16, {0x7f80, 0x3f80}), 0x7f80);           // infinity
  EXPECT_GT(sum16(GetParam(), DType::kBFloat16, {0x7f80, 0xff80}) & 0x7fff, 0x7f80);  // NaN
}

// Exact: by the definition of the format.
double value_of_half(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

TEST_P(ReduceElements, Float16OfEveryBitPattern_SurvivesUnchanged) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const uint16_t same = sum16(GetParam(), DType::kFloat16, {half});
    if (std::isnan(value_of_half(half))) {
      ASSERT_TRUE(std::isnan(value_of_half(same))) << bits;
    } else {
      ASSERT_EQ(same, half);
    }
  }
}

TEST_P(ReduceElements, Float16Sums_AreNearestEven) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const auto a = static_cast<uint16_t>(random()), b = static_cast<uint16_t>(random());
    const double exact = value_of_half(a) + value_of_half(b);
    const uint16_t sum = sum16(GetParam(), DType::kFloat16, {a, b});
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(value_of_half(sum)));
      continue;
    }
    if (std::isinf(value_of_half(sum))) {
      ASSERT_GE(std::abs(exact), 65520.0);
      continue;
    }
    const double error = std::abs(value_of_half(sum) - exact);
    for (int neighbour : {-1, 1}) {
      const double other = value_of_half(static_cast<uint16_t>(sum + neighbour));
      if (!std::isfinite(other)) continue;
      const double other_error = std::abs(other - exact);
      ASSERT_TRUE(error < other_error || (error == other_error && sum % 2 == 0))
          << std::hex << a << " + " << b << " gave " << sum;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, ReduceElements, testing::ValuesIn(kIsas));

}  // namespace
}  // namespace fleet
