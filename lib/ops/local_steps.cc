// local_steps: what adaptive_localsgd remembers. steps float32 [4]: mean loss L0 and learning rate
// r0 of the first step; k, the steps between two averages (0: not chosen yet); steps since the
// last average. By `event`:
//   "step"     one more since the last average
//   "average"  none
//   "first"    L0 = loss, r0 = learning_rate
//   "adapt"    k = min(16, max(1, ceil(sqrt(r0 * loss / (learning_rate * L0) * init_steps))))
// As Paddle's AdaptiveLocalSGDOptimizer, with init_steps within the root. A loss that is infinite
// or NaN changes nothing (train.on_nan=skip goes on after one); without an L0, "adapt" is "first"
// too. k is 1 where the root is not a number. loss, learning_rate float32 [1]: of "first" and
// "adapt" only.
#include "graph/program.h"

namespace fleet {

FLEET_OP(local_steps) {
  def.inputs = {{"steps"}, {"loss", Slot::kOptional}, {"learning_rate", Slot::kOptional}};
  def.outputs = {{"steps"}};
  def.attributes = {{"event", std::string("step")}, {"init_steps", int64_t{1}}};
  def.infer = [](ShapeContext& context) {
    const std::string& event = context.attributes().text("event");
    const bool looks = event == "first" || event == "adapt";
    FLEET_CHECK(looks || event == "step" || event == "average",
                "local_steps: no event '" + event + "'");
    FLEET_CHECK(context.shape(0) == Shape{4} && context.has_input(1) == looks &&
                    context.has_input(2) == looks,
                "local_steps: loss and rate come with 'first' and 'adapt'");
    context.set_like(0, 0);
  };
}

}  // namespace fleet
