#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

struct FcCase {
  Shape x;
  int64_t axis, in, out;
  bool bias = true;
};

Values naive_fc(const FcCase& c, const std::vector<Values>& in) {
  const int64_t rows = c.x.elements() / c.in;
  Values y(rows * c.out);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < c.out; ++o) {
      double sum = c.bias ? in[2][o] : 0;
      for (int64_t i = 0; i < c.in; ++i) sum += in[0][r * c.in + i] * in[1][o * c.in + i];
      y[r * c.out + o] = sum;
    }
  }
  return y;
}

void check_fc(const FcCase& c) {
  SCOPED_TRACE("x " + c.x.text() + " to " + std::to_string(c.out));
  check_op({.type = "fc",
            .attributes = {{"axis", c.axis}},
            .inputs = {{.shape = c.x},
                       {.shape = {c.out, c.in}, .kind = VarKind::kParameter},
                       {.shape = {c.out}, .kind = VarKind::kParameter, .present = c.bias}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{naive_fc(c, in)};
            }});
}

TEST(Fc, Matrix_MatchesReference) {
  check_fc({.x = {4, 10}, .axis = 1, .in = 10, .out = 3});
  check_fc({.x = {16, 64}, .axis = 1, .in = 64, .out = 17});
  check_fc({.x = {1, 32}, .axis = 1, .in = 32, .out = 16, .bias = false});
}

TEST(Fc, Image_IsFlattened) {
  check_fc({.x = {3, 4, 2, 2}, .axis = 1, .in = 16, .out = 5});
  check_fc({.x = {2, 20, 1, 1}, .axis = 1, .in = 20, .out = 5});
}

TEST(Fc, Sequence_KeepsItsLeadingAxes) {
  check_fc({.x = {2, 3, 8}, .axis = 2, .in = 8, .out = 4});
  check_fc({.x = {2, 3, 2, 4}, .axis = 2, .in = 8, .out = 4});
}

TEST(Fc, ManyRows_MatchReference) { check_fc({.x = {300, 12}, .axis = 1, .in = 12, .out = 7}); }

TEST(Fc, SingleOutput_MatchesReference) {
  check_fc({.x = {300, 70}, .axis = 1, .in = 70, .out = 1});
  check_fc({.x = {300, 70}, .axis = 1, .in = 70, .out = 1, .bias = false});
}

TEST(Fc, FrozenWeight_MatchesReference) {
  // A parameter is trained by nature, so a feed stands for a frozen weight.
  const FcCase c{.x = {4, 10}, .axis = 1, .in = 10, .out = 3};
  check_op({.type = "fc",
            .inputs = {{.shape = c.x},
                       {.shape = {c.out, c.in}, .differentiate = false},
                       {.shape = {c.out}}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{naive_fc(c, in)};
            }});
}

TEST(Fc, BlockedImage_IsReadInItsOrder) {
  const Layout blocked = Layout::blocked({2, 32, 2, 2}, {128, 64, 32, 16}, {{1, 16}});
  const FcCase c{.x = {2, 20, 2, 2}, .axis = 1, .in = 80, .out = 4};
  check_op({.type = "fc",
            .inputs = {{.shape = c.x, .kind = VarKind::kState, .layout = blocked},
                       {.shape = {c.out, c.in}, .kind = VarKind::kParameter},
                       {.shape = {c.out}, .kind = VarKind::kParameter}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{naive_fc(c, in)};
            }});
}

TEST(Fc, WeightThatDoesNotFit_IsRefused) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 3, 4});
  const VarId weight = program.parameter("w", {5, 11}, {});
  EXPECT_THROW(program.emit(section, "fc", {x, weight}), Error);
}

}  // namespace
}  // namespace fleet
