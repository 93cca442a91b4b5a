// fetch_parameters: copies parameters that only some ranks hold (Var::elsewhere) from rank `root`
// of the group into temporaries on all its ranks. Only the root reads the inputs.
#include "ops/collective.h"

namespace fleet {

FLEET_OP(fetch_parameters) {
  define_collective(def);
  def.inputs = {{"x", Slot::kVariadic}};
  def.outputs = {{"y", Slot::kVariadic}};
  def.add_trait<Collective>().contiguous_outputs = true;
  def.attributes["root"] = int64_t{0};
  def.infer = [](ShapeContext& context) {
    check_member(context, "root");
    FLEET_CHECK(context.op().inputs.size() == context.op().outputs.size(),
                "fetch_parameters: an output for each input");
    for (int i = 0; i < context.input_count(); ++i) {
      context.require(context.dtype(i) == context.dtype(0), "tensors of different types");
      context.set_like(i, i);
    }
  };
}

}  // namespace fleet
