// check_finite_and_unscale: whether any element of any gradient is infinite or not a number.
//
// found_inf int32 [1]: 1 if so, else 0. unscale float32 [1]: 1 / loss_scaling, the factor for the
// gradients. Paddle's operation of this name multiplies them at once; here the operations that read
// them do (gradient_scale, clip_scale), which saves a pass over memory. Gradients may be float32,
// float16 and bfloat16, mixed, in any layout (padding is zero).
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(check_finite_and_unscale) {
  def.inputs = {{"loss_scaling"}, {"gradients", Slot::kVariadic}};
  def.outputs = {{"found_inf"}, {"unscale"}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) {
    context.set(0, {1}, DType::kInt32);
    context.set(1, {1}, DType::kFloat32);
  };
}

}  // namespace fleet
