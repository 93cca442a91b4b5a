// Operations that move a variable to the host's memory and back. They run on a stream of their own,
// beside those that compute; the layout of elements stays. The pass offload makes them.
#include "ops/offload.h"

namespace fleet {
namespace {

constexpr char kHostMemory[] = "host_memory";

}  // namespace

bool writes_host_memory(const OpDef& def) { return def.attributes.contains(kHostMemory); }

// y, in the host's memory, is x.
FLEET_OP(copy_to_host) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{kHostMemory, true}};
  def.precision = Precision::kGray;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

// y is x, which lies in the host's memory. Starts when `after` has been computed: so y takes no
// memory before.
FLEET_OP(copy_from_host) {
  def.inputs = {{"x"}, {"after", Slot::kOptional}};
  def.outputs = {{"y"}};
  def.precision = Precision::kGray;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

// Its stream goes on when x has been written: memory that the writer of x read is free then.
FLEET_OP(wait_for) {
  def.inputs = {{"x"}};
  def.precision = Precision::kGray;
}

}  // namespace fleet
