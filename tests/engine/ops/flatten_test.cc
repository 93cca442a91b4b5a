#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

TEST(Flatten, StartAxis_KeepsThoseBefore) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 3, 4, 5});
  const auto shape = [&](int64_t start) {
    return program.var(program.emit(section, "flatten", {x}, {{"start_axis", start}})[0]).shape;
  };
  EXPECT_EQ(shape(0), (Shape{120}));
  EXPECT_EQ(shape(1), (Shape{2, 60}));
  EXPECT_EQ(shape(3), (Shape{2, 3, 4, 5}));
  EXPECT_THROW(shape(4), Error);
}

TEST(Flatten, BlockedLayout_KeepsLogicalOrder) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "flatten",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = [](const std::vector<Values>& in) { return std::vector<Values>{in[0]}; }});
}

}  // namespace
}  // namespace fleet
