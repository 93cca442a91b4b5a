// local_steps: the state of adaptive_localsgd. steps float32 [4]: mean loss L0 and learning rate r0
// of the first step; k, the steps between two averages (0: not chosen yet); steps since the last
// average. By `event`:
//   "step"     adds one step since the last average
//   "average"  resets the steps since the last average
//   "first"    L0 = loss, r0 = learning_rate
//   "adapt"    k = min(16, max(1, ceil(sqrt(r0 * loss / (learning_rate * L0) * init_steps))))
// As in Paddle's AdaptiveLocalSGDOptimizer, with init_steps inside the root. An infinite or NaN
// loss changes nothing (train.on_nan=skip continues after one); without an L0, "adapt" also acts as
// "first". k is 1 if the root is not a number. loss, learning_rate float32 [1]: only for "first"
// and "adapt".
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
                "local_steps: unknown event '" + event + "'");
    FLEET_CHECK(context.shape(0) == Shape{4} && context.has_input(1) == looks &&
                    context.has_input(2) == looks,
                "local_steps: loss and rate must be given exactly for 'first' and 'adapt'");
    context.set_like(0, 0);
  };
}

}  // namespace fleet
