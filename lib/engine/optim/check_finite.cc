// check_finite: whether the loss or any element of any gradient is infinite or not a number.
//
// found int32 [1]: 0 if all are finite, else n - i, where i is the lowest bad input (0: the loss,
// 1: the first gradient) and n their number. record int64 [4]: struct FiniteRecord; it accumulates,
// so the host may read it whenever it waits anyway. Gradients may be float32, float16 and bfloat16,
// mixed, in any layout (padding is zero).
#include "optim/check_finite.h"

namespace fleet {

FLEET_OP(check_finite) {
  def.inputs = {{"record"}, {"loss"}, {"gradients", Slot::kVariadic}};
  def.outputs = {{"found"}, {"record"}};
  def.inplace = {{0, 1}};
  def.infer = [](ShapeContext& context) {
    FLEET_CHECK(context.shape(0) == Shape{kFiniteRecord} && context.dtype(0) == DType::kInt64,
                "check_finite: a record of the wrong shape or type");
    FLEET_CHECK(context.shape(1) == Shape{1} && context.dtype(1) == DType::kFloat32,
                "check_finite: a loss that is not a single float32");
    context.set(0, {1}, DType::kInt32);
    context.set_like(1, 0);
  };
}

VarId append_check_finite(Program& program, SectionId section, VarId loss,
                          const std::vector<VarId>& gradients) {
  const VarId record = program.state(kFiniteRecordName, {kFiniteRecord}, Init(), DType::kInt64);
  const VarId found = program.temporary("not_finite");
  std::vector<VarId> inputs = {record, loss};
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  program.append(section, "check_finite", inputs, {found, record});
  return found;
}

}  // namespace fleet
