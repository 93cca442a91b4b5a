#include "ops/collective.h"

#include "ops/mixed_precision.h"

namespace fleet {

void define_collective(OpDef& def) {
  def.attributes["communicator"] = int64_t{0};
  def.attributes["after_previous"] = false;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<Collective>();
}

void define_bucket_collective(OpDef& def) {
  define_collective(def);
  def.inputs = {{"x", Slot::kVariadic}};
  def.outputs = {{"y", Slot::kVariadic}};
  def.add_trait<Collective>().contiguous_inputs = true;
}

void infer_in_place(ShapeContext& context) {
  const Op& op = context.op();
  FLEET_CHECK(op.inputs == op.outputs, op.type() + " works in place");
  group_size(context);
  for (int i = 0; i < context.input_count(); ++i) {
    context.require(context.dtype(i) == context.dtype(0), "tensors of different types");
    context.set_like(i, i);
  }
}

const RankGroup& group_of(const Program& program, const Op& op) {
  const int64_t group = op.attributes.integer("communicator");
  const auto count = static_cast<int64_t>(program.groups().size());
  FLEET_CHECK(group >= 0 && group < count, op.type() + " names communicator " +
                                               std::to_string(group) + " of a program with " +
                                               std::to_string(count) + " groups");
  return program.groups()[group];
}

int group_size(const ShapeContext& context) {
  return static_cast<int>(group_of(context.program(), context.op()).ranks.size());
}

void check_member(const ShapeContext& context, const std::string& attribute) {
  const int64_t rank = context.attributes().integer(attribute);
  const int size = group_size(context);
  FLEET_CHECK(rank >= 0 && rank < size, context.op().type() + ": " + attribute + " " +
                                            std::to_string(rank) + " of a group of " +
                                            std::to_string(size) + " ranks");
}

void check_reduction(const ShapeContext& context) {
  const std::string& op = context.attributes().text("op");
  FLEET_CHECK(op == "sum" || op == "min" || op == "max",
              context.op().type() + ": no reduction '" + op + "'");
}

}  // namespace fleet
