#include "ops/arithmetic.h"

#include <gtest/gtest.h>

#include "exec/backend.h"

namespace fleet {
namespace {

// An operation that no module knows: its own trait is all that estimates may use.
FLEET_OP(arithmetic_test_product) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.add_trait<Arithmetic>().operations = [](const Program&, const Op&) { return 12345.0; };
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

TEST(Arithmetic, Operations_AreWhatTheOperationStates) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {10, 10});
  program.emit(section, "arithmetic_test_product", {x});
  program.emit(section, "relu", {x});
  EXPECT_EQ(operations_of(program, program.ops()[0]), 12345);
  EXPECT_EQ(operations_of(program, program.ops()[1]), 0);
}

TEST(Arithmetic, GradientOfABiasOnly_HasNoProducts) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {4, 3});
  const VarId dy = program.feed("dy", DType::kFloat32, {4, 5});
  const VarId dweight = program.temporary("dweight"), dbias = program.temporary("dbias");
  program.append(section, "fc_weight_grad", {x, dy}, {dweight, dbias});
  program.append(section, "fc_weight_grad", {x, dy}, {kNoVar, program.temporary("dbias")});
  EXPECT_EQ(operations_of(program, program.ops()[0]), 2 * 4 * 3 * 5);
  EXPECT_EQ(operations_of(program, program.ops()[1]), 0);
}

TEST(BackendDef, UnknownBackend_HasADeviceOfItsOwn) {
  const BackendDef& unknown = backend_def("neither linked nor loaded");
  EXPECT_FALSE(unknown.uses_host_memory);
  EXPECT_FALSE(unknown.uses_host_cores);
  EXPECT_TRUE(backend_def("cpu").uses_host_memory);
}

}  // namespace
}  // namespace fleet
