#include "optim/stochastic_rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tensor/float16.h"
#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

float narrowed(float value, uint32_t random) {
  const uint32_t narrow = round_to_bfloat16(std::bit_cast<uint32_t>(value), random);
  return std::bit_cast<float>(narrow << 16);
}

TEST(StochasticRounding, ExactValues_StayWhateverTheBits) {
  for (const float value : {0.f, -0.f, 1.f, -1.5f, 0x1.02p-30f, 0x1.fep127f, -INFINITY, INFINITY,
                            0x1p-133f /* the smallest of bfloat16 */}) {
    for (const uint32_t random : {0u, 1u, 0x8000u, 0xffffu}) {
      EXPECT_EQ(std::bit_cast<uint32_t>(narrowed(value, random)), std::bit_cast<uint32_t>(value));
    }
  }
}

TEST(StochasticRounding, NaNs_StayNaNs) {
  for (const uint32_t bits : {0x7fffffffu, 0x7f800001u, 0xffffffffu, 0xff800001u}) {
    for (const uint32_t random : {0u, 0xffffu}) {
      EXPECT_TRUE(std::isnan(narrowed(std::bit_cast<float>(bits), random)));
    }
  }
}

// All 65536 random numbers: exactly the value in the mean, for both signs.
TEST(StochasticRounding, MeanOverAllBits_IsTheValue) {
  for (const float value : {1.001f, -1.001f, 0.3f, -1234.5f, 0x1.fffp10f, 1e-40f}) {
    double sum = 0;
    for (uint32_t random = 0; random < 65536; ++random) sum += narrowed(value, random);
    EXPECT_DOUBLE_EQ(sum / 65536, value);
  }
}

TEST(StochasticRounding, Draws_DifferByStepParameterValueAndElement) {
  const uint64_t key = rounding_key(1, "a.weight");
  const auto draw = [](uint64_t of, int64_t step, int value, uint64_t element) {
    return rounding_draw(rounding_stream(of, step, value), element);
  };
  EXPECT_EQ(draw(key, 1, 0, 0), draw(rounding_key(1, "a.weight"), 1, 3, 0));  // shared by four
  EXPECT_NE(draw(key, 1, 0, 0), draw(key, 1, 4, 0));
  EXPECT_NE(draw(key, 1, 0, 0), draw(key, 2, 0, 0));
  EXPECT_NE(draw(key, 1, 0, 0), draw(key, 1, 0, 1));
  EXPECT_NE(draw(key, 1, 0, 0), draw(rounding_key(1, "b.weight"), 1, 0, 0));
  EXPECT_NE(draw(key, 1, 0, 0), draw(rounding_key(2, "a.weight"), 1, 0, 0));
}

// Parameters of ones with equal gradients, in bfloat16, after so many steps of sgd.
std::vector<float> descended(float start, float gradient, float rate, int steps, int64_t count) {
  PlanOptions options = op_plan_options();
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId learning_rate = program.feed("learning_rate", DType::kFloat32, {1});
  const VarId p = program.parameter("p", {count}, {Init::kConstant, start});
  program.var(p).dtype = DType::kBFloat16;
  const VarId g = program.feed("p@GRAD", DType::kFloat32, {count});
  program.set_gradient(p, g);
  append_updates(program, section, {p}, learning_rate, optimizer_settings(R"({"name": "sgd"})"), {},
                 /*seed=*/9);
  Executor executor(plan_program(program, {}, options), op_device(), nullptr);
  executor.initialize(1);
  executor.feed(learning_rate, std::span(&rate, 1));
  const std::vector<float> gradients(count, gradient);
  executor.feed(g, gradients);
  for (int step = 0; step < steps; ++step) executor.run({.step = step});
  const std::vector<BFloat16> narrow = executor.values<BFloat16>(p);
  return {narrow.begin(), narrow.end()};
}

// The update is a power of two: the same bits on every device.
TEST(StochasticRounding, SgdStep_RoundsByTheDrawsOfItsElements) {
  const std::vector<float> got = descended(1, 1, 0x1p-10f, 1, 3001);
  const uint64_t stream = rounding_stream(rounding_key(9, "p"), 1, 0);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto random = static_cast<uint32_t>(rounding_draw(stream, i)) & 0xffff;
    ASSERT_EQ(got[i], narrowed(1 - 0x1p-10f, random)) << i;
  }
}

// 64 steps of 2^-12, a sixteenth of the distance to the next bfloat16 below 1, which is 2^-8:
// rounding to nearest would stay at 1. Tolerance: five standard deviations of the mean.
TEST(StochasticRounding, SmallUpdates_AreNotLost) {
  constexpr int64_t kCount = 20000;
  double sum = 0;
  for (const float value : descended(1, 1, 0x1p-12f, 64, kCount)) sum += value;
  const double unit = 0x1p-8, share = 0x1p-12 / unit;
  const double deviation = unit * std::sqrt(64 * share * (1 - share) / kCount);
  EXPECT_NEAR(sum / kCount, 1 - 64 * 0x1p-12, 5 * deviation);
}

}  // namespace
}  // namespace fleet
