#include <gtest/gtest.h>

#include "exec/backend.h"
#include "exec/compute_rates.h"
#include "ops/arithmetic.h"

namespace fleet {
namespace {

// An operation that no module knows: its own trait is all that estimates may use.
FLEET_OP(op_work_test_product) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.add_trait<Arithmetic>().operations = [](const Program&, const Op&) { return 12345.0; };
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

TEST(OpWork, Flops_AreWhatTheOperationStates) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {10, 10});
  program.emit(section, "op_work_test_product", {x});
  program.emit(section, "relu", {x});
  EXPECT_EQ(work_of(program, program.ops()[0]).flops, 12345);
  EXPECT_EQ(work_of(program, program.ops()[1]).flops, 0);
  EXPECT_EQ(work_of(program, program.ops()[1]).bytes, 2 * 100 * 4);
}

TEST(OpWork, GradientOfABiasOnly_HasNoProducts) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {4, 3});
  const VarId dy = program.feed("dy", DType::kFloat32, {4, 5});
  const VarId dweight = program.temporary("dweight"), dbias = program.temporary("dbias");
  program.append(section, "fc_weight_grad", {x, dy}, {dweight, dbias});
  program.append(section, "fc_weight_grad", {x, dy}, {kNoVar, program.temporary("dbias")});
  EXPECT_EQ(work_of(program, program.ops()[0]).flops, 2 * 4 * 3 * 5);
  EXPECT_EQ(work_of(program, program.ops()[1]).flops, 0);
}

TEST(BackendDef, UnknownBackend_HasADeviceOfItsOwn) {
  const BackendDef& unknown = backend_def("neither linked nor loaded");
  EXPECT_FALSE(unknown.uses_host_memory);
  EXPECT_FALSE(unknown.uses_host_cores);
  EXPECT_EQ(unknown.rates(8).parts, 1);
  EXPECT_TRUE(backend_def("cpu").uses_host_memory);
  EXPECT_EQ(backend_def("cpu").rates(8).parts, 8);
}

}  // namespace
}  // namespace fleet
