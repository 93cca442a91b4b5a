// all_reduce: every tensor's sum (or maximum, ...) over all ranks, in place: outputs are the
// inputs. They lie side by side in the communicator's memory and travel as one message.
#include "graph/program.h"

namespace fleet {

FLEET_OP(all_reduce) {
  def.inputs = {{"x", Slot::kVariadic}};
  def.outputs = {{"y", Slot::kVariadic}};
  // communicator: which of the job's it goes through, each with a stream of its own;
  // after_previous: not before the collective before it has ended, whatever that one's stream.
  def.attributes = {
      {"op", std::string("sum")}, {"communicator", int64_t{0}}, {"after_previous", false}};
  def.precision = Precision::kGray;
  def.contiguous_inputs = true;
  def.is_collective = true;
  def.infer = [](ShapeContext& context) {
    FLEET_CHECK(context.op().inputs == context.op().outputs, "all_reduce works in place");
    for (int i = 0; i < context.input_count(); ++i) {
      context.require(context.dtype(i) == context.dtype(0), "tensors of different types");
      context.set_like(i, i);
    }
  };
}

}  // namespace fleet
