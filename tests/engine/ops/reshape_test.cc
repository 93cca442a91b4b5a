#include <gtest/gtest.h>

#include "tensor/host.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> same(const std::vector<Values>& in) { return {in[0]}; }

Shape reshaped(const Shape& x, std::vector<int64_t> shape) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId var = program.feed("x", DType::kFloat32, x);
  return program.var(program.emit(section, "reshape", {var}, {{"shape", std::move(shape)}})[0])
      .shape;
}

TEST(Reshape, ZeroAndMinusOne_KeepAndInfer) {
  EXPECT_EQ(reshaped({2, 3, 4}, {0, -1}), (Shape{2, 12}));
  EXPECT_EQ(reshaped({2, 3, 4}, {-1}), (Shape{24}));
  EXPECT_EQ(reshaped({2, 3, 4}, {4, 0, 2, 1}), (Shape{4, 3, 2, 1}));
}

TEST(Reshape, CountsThatDiffer_AreRefused) {
  EXPECT_THROW(reshaped({2, 3}, {4}), Error);
  EXPECT_THROW(reshaped({2, 3}, {4, -1}), Error);
  EXPECT_THROW(reshaped({2, 3}, {-1, -1}), Error);
}

TEST(Reshape, Plain_KeepsRowMajorOrder) {
  check_op({.type = "reshape",
            .attributes = {{"shape", std::vector<int64_t>{4, -1}}},
            .inputs = {{.shape = {2, 3, 4}}},
            .reference = same});
}

TEST(Reshape, BlockedLayout_KeepsLogicalOrder) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "reshape",
            .attributes = {{"shape", std::vector<int64_t>{2, 180}}},
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = same});
}

TEST(Reshape, OfATemporaryNobodyElseReads_TakesItsMemory) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 3});
  const VarId middle = program.emit(section, "scale", {x}, {{"scale", 2.0}})[0];
  const VarId flat =
      program.emit(section, "reshape", {middle}, {{"shape", std::vector<int64_t>{6}}})[0];
  const VarId y = program.emit(section, "scale", {flat}, {{"scale", 1.0}})[0];
  HostDevice device;
  Executor executor(plan_program(program, {y}), device, nullptr);
  EXPECT_EQ(executor.argument(middle).data, executor.argument(flat).data);
}

}  // namespace
}  // namespace fleet
