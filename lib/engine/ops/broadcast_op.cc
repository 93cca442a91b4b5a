// broadcast: sends every tensor of rank `root` of a group to all its ranks, in place.
#include "ops/collective.h"

namespace fleet {

FLEET_OP(broadcast) {
  define_bucket_collective(def);
  def.attributes["root"] = int64_t{0};
  def.infer = [](ShapeContext& context) {
    check_member(context, "root");
    infer_in_place(context);
  };
}

}  // namespace fleet
