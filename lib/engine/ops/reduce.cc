// reduce: every tensor's sum (or minimum, maximum) over the ranks of a group, in place on rank
// `root` of the group. The contents on the other ranks are undefined afterwards.
#include "ops/collective.h"

namespace fleet {

FLEET_OP(reduce) {
  define_bucket_collective(def);
  def.attributes["op"] = std::string("sum");
  def.attributes["root"] = int64_t{0};
  def.infer = [](ShapeContext& context) {
    check_reduction(context);
    check_member(context, "root");
    infer_in_place(context);
  };
}

}  // namespace fleet
