// send: sends x to rank `peer` of a group, which receives it with its recv of the same ordinal for
// this rank.
#include "ops/collective.h"

namespace fleet {

FLEET_OP(send) {
  define_collective(def);
  def.inputs = {{"x"}};
  def.attributes["peer"] = int64_t{0};
  def.infer = [](ShapeContext& context) { check_member(context, "peer"); };
}

}  // namespace fleet
