// Operations that move a variable to host memory and back. They run on a separate stream, in
// parallel with computation, and keep the layout. Inserted by the pass offload.
#include "ops/offload.h"

#include "ops/mixed_precision.h"

namespace fleet {
namespace {

constexpr char kHostMemory[] = "host_memory";

}  // namespace

bool writes_host_memory(const OpDef& def) { return def.attributes.contains(kHostMemory); }

// Copies x to y in host memory.
FLEET_OP(copy_to_host) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{kHostMemory, true}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

// Copies x from host memory to y. Starts after `after` has been computed, so that y takes no memory
// before.
FLEET_OP(copy_from_host) {
  def.inputs = {{"x"}, {"after", Slot::kOptional}};
  def.outputs = {{"y"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

// Makes its stream wait until x has been written: memory that the writer of x read is free then.
FLEET_OP(wait_for) {
  def.inputs = {{"x"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
}

}  // namespace fleet
