// send: sends x to rank `peer` of a group, which receives it with its recv of the same ordinal for
// this rank. done (optional): float32 [1] without a value, which operations name in Op::after to
// start when x has been sent.
#include "ops/collective.h"

namespace fleet {

FLEET_OP(send) {
  define_collective(def);
  def.inputs = {{"x"}};
  def.outputs = {{"done", Slot::kOptional}};
  def.attributes["peer"] = int64_t{0};
  def.infer = [](ShapeContext& context) {
    check_member(context, "peer");
    context.set(0, {1}, DType::kFloat32);
  };
}

}  // namespace fleet
