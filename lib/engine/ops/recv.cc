// recv: receives a tensor of this shape and type from rank `peer` of a group.
#include "graph/op.h"
#include "ops/collective.h"

namespace fleet {

FLEET_OP(recv) {
  define_collective(def);
  def.outputs = {{"y"}};
  def.attributes["peer"] = int64_t{0};
  def.attributes["shape"] = std::vector<int64_t>{};
  def.attributes["dtype"] = std::string("float32");
  def.infer = [](ShapeContext& context) {
    check_member(context, "peer");
    const Attributes& attributes = context.attributes();
    context.set(0, to_shape(attributes.integers("shape")), to_dtype(attributes.text("dtype")));
  };
}

}  // namespace fleet
