// dgc_apply: updates parameters by the gradient elements that all ranks sent: for each rank r in
// order and each of its (index, value): p[index] -= learning_rate * (value / ranks). All ranks get
// the same bits.
//
// Inputs: learning_rate float32 [1]; gathered int32 [ranks * 2 * sum of counts], the concatenation
// of all ranks' dgc_select outputs; the parameters. Outputs: the same parameters.
#include "graph/program.h"

namespace fleet {

FLEET_OP(dgc_apply) {
  def.inputs = {{"learning_rate"}, {"gathered"}, {"parameters", Slot::kVariadic}};
  def.outputs = {{"parameters", Slot::kVariadic}};
  def.attributes = {{"counts", std::vector<int64_t>()}};  // per parameter, as in dgc_select
  def.infer = [](ShapeContext& context) {
    const auto& counts = context.attributes().integers("counts");
    FLEET_CHECK(counts.size() + 2 == context.op().inputs.size() &&
                    counts.size() == context.op().outputs.size(),
                "dgc_apply: needs one count per parameter");
    int64_t total = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const int input = static_cast<int>(i) + 2;
      FLEET_CHECK(context.dtype(input) == DType::kFloat32, "dgc_apply updates float32 only");
      context.set_like(static_cast<int>(i), input);
      total += counts[i];
    }
    FLEET_CHECK(context.dtype(1) == DType::kInt32 && total > 0 &&
                    context.shape(1).elements() % (2 * total) == 0,
                "dgc_apply: the size of the gathered data does not match the counts");
  };
}

}  // namespace fleet
