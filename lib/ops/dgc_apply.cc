// dgc_apply: parameters descend along what all ranks sent of their gradients: for each rank r in
// order and each of its (index, value): p[index] -= learning_rate * (value / ranks). All ranks get
// the same bits.
//
// Inputs: learning_rate float32 [1]; gathered int32 [ranks * 2 * sum of counts], what dgc_select
// encoded on each rank, one behind the other; the parameters. Outputs: the same parameters.
#include "graph/program.h"

namespace fleet {

FLEET_OP(dgc_apply) {
  def.inputs = {{"learning_rate"}, {"gathered"}, {"parameters", Slot::kVariadic}};
  def.outputs = {{"parameters", Slot::kVariadic}};
  def.attributes = {{"counts", std::vector<int64_t>()}};  // of each parameter, as of dgc_select
  def.infer = [](ShapeContext& context) {
    const auto& counts = context.attributes().integers("counts");
    FLEET_CHECK(counts.size() + 2 == context.op().inputs.size() &&
                    counts.size() == context.op().outputs.size(),
                "dgc_apply: a count for each parameter");
    int64_t total = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const int input = static_cast<int>(i) + 2;
      FLEET_CHECK(context.dtype(input) == DType::kFloat32, "dgc_apply updates float32 only");
      context.set_like(static_cast<int>(i), input);
      total += counts[i];
    }
    FLEET_CHECK(context.dtype(1) == DType::kInt32 && total > 0 &&
                    context.shape(1).elements() % (2 * total) == 0,
                "dgc_apply: what was gathered is not what was sent");
  };
}

}  // namespace fleet
