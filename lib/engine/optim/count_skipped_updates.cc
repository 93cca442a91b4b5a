// count_skipped_updates: the number of updates in a row that were left out without any prospect of
// a good one:
//   found_inf != 0 and (no loss_scaling, or loss_scaling <= 1, or the loss is not finite):
//              skipped += 1
//   else:      skipped = 0
// A smaller loss scale repairs gradients that overflow, so they count only once it is at its least.
// skipped int64 [1] is a state, found_inf int32 [1], loss and loss_scaling (optional) float32 [1].
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(count_skipped_updates) {
  def.inputs = {{"skipped"}, {"found_inf"}, {"loss"}, {"loss_scaling", Slot::kOptional}};
  def.outputs = {{"skipped"}};
  def.inplace = {{0, 0}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
