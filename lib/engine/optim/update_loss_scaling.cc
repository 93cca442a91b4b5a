// update_loss_scaling: Paddle's rule for the next step's scale (operators/amp), all on the device:
//   found_inf: good = 0, bad += 1; at bad == decr_every_n_nan_or_inf:
//              loss_scaling = max(1, loss_scaling * decr_ratio), bad = 0
//   else:      bad = 0, good += 1; at good == incr_every_n_steps:
//              loss_scaling *= incr_ratio if that is finite, good = 0
// loss_scaling float32 [1], good_steps and bad_steps int64 [1] are states.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(update_loss_scaling) {
  def.inputs = {{"found_inf"}, {"loss_scaling"}, {"good_steps"}, {"bad_steps"}};
  def.outputs = {{"loss_scaling"}, {"good_steps"}, {"bad_steps"}};
  def.attributes = {{"incr_every_n_steps", int64_t{1000}},
                    {"decr_every_n_nan_or_inf", int64_t{2}},
                    {"incr_ratio", 2.0},
                    {"decr_ratio", 0.8}};
  def.inplace = {{1, 0}, {2, 1}, {3, 2}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) {
    for (int i = 0; i < 3; ++i) context.set_like(i, i + 1);
  };
}

}  // namespace fleet
