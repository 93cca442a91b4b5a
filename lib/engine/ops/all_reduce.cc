// all_reduce: every tensor's sum (or minimum, maximum) over the ranks of a group, in place.
#include "ops/collective.h"

namespace fleet {

FLEET_OP(all_reduce) {
  define_bucket_collective(def);
  def.attributes["op"] = std::string("sum");
  def.infer = [](ShapeContext& context) {
    check_reduction(context);
    infer_in_place(context);
  };
}

}  // namespace fleet
