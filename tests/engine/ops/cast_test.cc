#include <gtest/gtest.h>

#include <cmath>

#include "tensor/host.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> same(const std::vector<Values>& in) { return {in[0]}; }

TEST(Cast, IntegersToFloat_AreExact) {
  check_op({.type = "cast",
            .inputs = {{.shape = {4}, .values = {-3, 0, 7, 65536}, .dtype = DType::kInt64}},
            .reference = same,
            .tolerance = 0,
            .check_gradient = false});
}

TEST(Cast, FloatToIntegers_TruncatesTowardZero) {
  check_op({.type = "cast",
            .attributes = {{"to", std::string("int64")}},
            .inputs = {{.shape = {4}, .values = {-1.75, -0.5, 0.99, 5}}},
            .reference =
                [](const std::vector<Values>&) {
                  return std::vector<Values>{{-1, 0, 0, 5}};
                },
            .tolerance = 0,
            .check_gradient = false});
}

TEST(Cast, SameType_PassesGradient) {
  check_op({.type = "cast", .inputs = {{.shape = {3, 5}}}, .reference = same});
}

// x -> type -> float32.
std::vector<float> round_trip(const std::vector<float>& values, const std::string& type) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {static_cast<int64_t>(values.size())});
  const VarId low = program.emit(section, "cast", {x}, {{"to", type}})[0];
  const VarId y = program.emit(section, "cast", {low})[0];
  HostDevice device;
  Executor executor(plan_program(program, {y}), device, nullptr);
  executor.feed(x, values);
  executor.run({});
  return executor.values<float>(y);
}

TEST(Cast, BFloat16_RoundsToNearestEven) {
  // 8 bits of mantissa: 1 + 2^-8 lies between 1 and 1 + 2^-7 and goes to the even 1; 1 + 3 * 2^-8
  // goes up.
  const std::vector<float> got =
      round_trip({1, 1 + 0x1p-8f, 1 + 0x1.8p-7f, 1 + 0x1.01p-8f, -3e38f, INFINITY}, "bfloat16");
  EXPECT_EQ(got, (std::vector<float>{1, 1, 1 + 0x1p-6f, 1 + 0x1p-7f, -0x1.c4p+127f, INFINITY}));
  EXPECT_TRUE(std::isnan(round_trip({NAN}, "bfloat16")[0]));
}

TEST(Cast, Float16_RoundsToNearestEvenAndOverflows) {
  EXPECT_EQ(round_trip({1 + 0x1p-11f, 1 + 0x1.8p-10f, 65504, 1e6f, 0x1p-24f}, "float16"),
            (std::vector<float>{1, 1 + 0x1p-9f, 65504, INFINITY, 0x1p-24f}));
}

TEST(Cast, Bytes_BecomeFloats) {
  EXPECT_EQ(round_trip({0, 7, 255}, "uint8"), (std::vector<float>{0, 7, 255}));
}

}  // namespace
}  // namespace fleet
