// Properties of every elementwise operation with two operands.
#include "tests/engine/ops/elementwise.h"

namespace fleet {
namespace {

void check_elementwise(const BinaryOperation& op, const Operands& operands) {
  SCOPED_TRACE(operands.x.text() + " and " + operands.y.text());
  check_op({.type = op.type,
            .attributes = {{"axis", operands.axis}},
            .inputs = {{.shape = operands.x}, {.shape = operands.y}},
            .reference =
                [&](const std::vector<Values>& in) {
                  return naive_elementwise(operands, in, op.function);
                },
            .check_gradient = small(operands)});
}

TEST_P(ElementwiseTest, SameShape_MatchesReference) {
  check_elementwise(GetParam(), {{3, 4, 5}, {3, 4, 5}});
}

TEST_P(ElementwiseTest, Spread_MatchesReference) {
  for (const Operands& operands : spreads()) check_elementwise(GetParam(), operands);
}

TEST_P(ElementwiseTest, OneGradientWanted_MatchesReference) {
  for (const Operands& operands : {Operands{{4, 6}, {6}}, Operands{{4, 6}, {4, 6}}}) {
    for (const int wanted : {0, 1}) {
      check_op({.type = GetParam().type,
                .inputs = {{.shape = operands.x, .differentiate = wanted == 0},
                           {.shape = operands.y, .differentiate = wanted == 1}},
                .reference = [&](const std::vector<Values>& in) {
                  return naive_elementwise(operands, in, GetParam().function);
                }});
    }
  }
}

TEST_P(ElementwiseTest, BlockedLayout_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  const Operands operands{{2, 20, 3, 3}, {2, 20, 3, 3}};
  check_op({.type = GetParam().type,
            .inputs = {{.shape = operands.x, .kind = VarKind::kState, .layout = blocked},
                       {.shape = operands.y, .kind = VarKind::kState, .layout = blocked}},
            .reference = [&](const std::vector<Values>& in) {
              return naive_elementwise(operands, in, GetParam().function);
            }});
}

TEST_P(ElementwiseTest, FactorsOfChannels_InLayoutsOfImages_MatchReference) {
  const Layout blocks_of_8 = Layout::blocked({2, 24, 3, 5}, {360, 120, 40, 8}, {{1, 8}});
  const Layout blocks_of_16 = Layout::blocked({2, 32, 3, 5}, {480, 240, 80, 16}, {{1, 16}});
  const Operands operands{{2, 20, 3, 5}, {2, 20, 1, 1}, 0};
  const Layout last = Layout::channels_last(operands.x);
  for (const Layout& layout : {blocks_of_8, blocks_of_16, last}) {
    for (const bool both : {true, false}) {
      check_op({.type = GetParam().type,
                .attributes = {{"axis", operands.axis}},
                .inputs = {{.shape = operands.x,
                            .kind = VarKind::kState,
                            .differentiate = both,
                            .layout = layout},
                           {.shape = operands.y}},
                .reference = [&](const std::vector<Values>& in) {
                  return naive_elementwise(operands, in, GetParam().function);
                }});
    }
  }
}

TEST_P(ElementwiseTest, ShapesThatDoNotFit_AreRefusedByName) {
  try {
    check_elementwise(GetParam(), {{2, 3}, {4}});
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("[4]"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fleet
