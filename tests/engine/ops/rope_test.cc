#include <gtest/gtest.h>

#include <cmath>

#include "ops/rope_frequencies.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

// The largest absolute error of cos and sin for a long context.
TEST(RopeTable, LongPositions_AreExact) {
  const Values positions = {0, 1, 2, 3, 1000, 131071, 5, 7777, 32768, 99999};
  const auto tables =
      check_op({.type = "rope_table",
                .attributes = {{"dim", int64_t{64}}, {"theta", 10000.0}},
                .inputs = {{.shape = {2, 5}, .values = positions, .dtype = DType::kInt64}},
                .reference =
                    [](const std::vector<Values>& in) {
                      Values cos, sin;
                      for (const double position : in[0]) {
                        for (int64_t i = 0; i < 32; ++i) {
                          const float angle =
                              static_cast<float>(position) * rope_frequency(10000, i, 64);
                          cos.push_back(std::cos(static_cast<double>(angle)));
                          sin.push_back(std::sin(static_cast<double>(angle)));
                        }
                      }
                      return std::vector<Values>{cos, sin};
                    },
                .tolerance = 3e-7,
                .check_gradient = false});
  EXPECT_EQ(tables[0][0], 1);
  EXPECT_EQ(tables[1][0], 0);
}

// A row that is longer than the original length has other frequencies than one that is not.
TEST(RopeTable, DynamicRows_HaveTheirOwnFrequencies) {
  const DynamicRope rope{.theta = 10000, .factor = 2, .original = 16, .dim = 8};
  check_op({.type = "rope_table",
            .attributes = {{"dim", int64_t{8}},
                           {"type", std::string("dynamic")},
                           {"factor", 2.0},
                           {"original_max_position_embeddings", int64_t{16}}},
            .inputs = {{.shape = {2, 3}, .values = {0, 15, 3, 0, 40, 7}, .dtype = DType::kInt32}},
            .reference =
                [rope](const std::vector<Values>& in) {
                  Values cos, sin;
                  for (size_t s = 0; s < in[0].size(); ++s) {
                    const double base = rope.base(s < 3 ? 16 : 41);
                    for (int64_t i = 0; i < 4; ++i) {
                      const double angle = in[0][s] * std::pow(base, -2.0 * i / 8);
                      cos.push_back(std::cos(angle));
                      sin.push_back(std::sin(angle));
                    }
                  }
                  return std::vector<Values>{cos, sin};
                },
            .check_gradient = false});
  EXPECT_GT(rope.base(41), 10000);
}

TEST(RopeTable, WrongSettings_AreRefused) {
  const auto table = [](const Attributes& attributes) {
    check_op({.type = "rope_table",
              .attributes = attributes,
              .inputs = {{.shape = {1, 2}, .values = {0, 1}, .dtype = DType::kInt64}},
              .reference =
                  [](const std::vector<Values>&) {
                    return std::vector<Values>{{}, {}};
                  },
              .check_gradient = false});
  };
  const int64_t dim = 8;
  EXPECT_NO_THROW(table({{"dim", dim}}));
  EXPECT_THROW(table({{"dim", int64_t{7}}}), Error);
  EXPECT_THROW(table({{"dim", dim}, {"type", std::string("longrope")}}), Error);
  EXPECT_THROW(table({{"dim", dim}, {"type", std::string("linear")}, {"factor", 0.5}}), Error);
  EXPECT_THROW(table({{"dim", dim}, {"type", std::string("yarn")}, {"factor", 2.0}}), Error);
}

struct RopeCase {
  Shape x;
  int64_t rotated = 0;  // elements of a head
  int64_t heads = 0;
};

OpCheck check_of_rope(const RopeCase& c) {
  const int64_t size = c.x[3], half = c.rotated / 2, heads = c.heads ? c.heads : c.x[2];
  const CheckInput table{
      .shape = {c.x[0], c.x[1], half}, .dtype = DType::kFloat32, .differentiate = false};
  return {.type = "rope",
          .attributes = {{"heads", c.heads}},
          .inputs = {{.shape = c.x}, table, table},
          .reference = [=, all = c.x[2]](const std::vector<Values>& in) {
            Values y = in[0];
            for (size_t head = 0; head < y.size() / size; ++head) {
              if (static_cast<int64_t>(head) % all >= heads) continue;
              for (int64_t i = 0; i < half; ++i) {
                const size_t a = head * size + i, b = a + half, angle = head / all * half + i;
                const double c = in[1][angle], s = in[2][angle];
                y[a] = in[0][a] * c - in[0][b] * s;
                y[b] = in[0][b] * c + in[0][a] * s;
              }
            }
            return std::vector<Values>{y};
          }};
}

TEST(Rope, AllHeads_MatchReference) {
  check_op(check_of_rope({.x = {2, 3, 2, 6}, .rotated = 6}));
  check_op(check_of_rope({.x = {2, 2, 3, 16}, .rotated = 16}));
}

TEST(Rope, SomeHeadsOrPartsOfThem_CopyTheRest) {
  check_op(check_of_rope({.x = {2, 3, 4, 6}, .rotated = 6, .heads = 3}));
  check_op(check_of_rope({.x = {2, 3, 2, 8}, .rotated = 4}));
  check_op(check_of_rope({.x = {1, 2, 3, 32}, .rotated = 16, .heads = 1}));
}

TEST(Rope, ManyTokens_MatchReference) {
  OpCheck check = check_of_rope({.x = {2, 70, 3, 64}, .rotated = 64, .heads = 2});
  check.check_gradient = false;
  check_op(check);
}

TEST(Rope, WrongShapes_AreRefused) {
  EXPECT_THROW(check_op(check_of_rope({.x = {1, 2, 3, 4}, .rotated = 6})), Error);
  EXPECT_THROW(check_op(check_of_rope({.x = {1, 2, 3, 4}, .rotated = 4, .heads = 4})), Error);
}

}  // namespace
}  // namespace fleet
