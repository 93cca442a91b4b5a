// rope: rotates pairs of elements of each head by the angles of its position (Su et al., 2021).
// x: [B, S, H, D]; cos, sin: float32 [B, S, R / 2] of rope_table, R <= D. Pairs are halves, as in
// transformers' Llama: with a = x[..., :R/2] and b = x[..., R/2:R],
//   y[..., :R/2] = a cos - b sin;  y[..., R/2:R] = b cos + a sin;  y[..., R:] = x[..., R:].
// heads: the first `heads` heads are rotated, and the others are copied (a packed projection of
// queries, keys and values: values are not rotated); 0: all. The gradient is the rotation back.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

void define_rotation(OpDef& def, const char* in, const char* out) {
  def.inputs = {{in}, {"cos"}, {"sin"}};
  def.outputs = {{out}};
  def.attributes = {{"heads", int64_t{0}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    const Shape &x = context.shape(0), &table = context.shape(1);
    context.require(x.rank() == 4,
                    "x must be [batch, sequence, heads, head size], not " + x.text());
    context.require(context.shape(2) == table && context.dtype(1) == DType::kFloat32 &&
                        context.dtype(2) == DType::kFloat32,
                    "cos and sin must be float32 of one shape");
    context.require(table.rank() == 3 && table[0] == x[0] && table[1] == x[1],
                    "cos " + table.text() + " does not fit " + x.text());
    context.require(2 * table[2] <= x[3], "cos " + table.text() + " rotates " +
                                              std::to_string(2 * table[2]) + " elements of " +
                                              std::to_string(x[3]));
    const int64_t heads = context.attributes().integer("heads");
    context.require(heads >= 0 && heads <= x[2],
                    std::to_string(heads) + " heads of " + std::to_string(x[2]));
    context.set_like(0, 0);
  };
}

}  // namespace

FLEET_OP(rope) {
  def.help =
      "x [B, S, H, D] with the halves of its first `heads` heads (0: all) rotated by cos and sin "
      "of rope_table";
  define_rotation(def, "x", "y");
  def.gradient = [](GradientContext& context) {
    if (!context.needs(0)) return;
    context.append("rope_grad", {context.output_gradient(0), context.input(1), context.input(2)},
                   {context.input_gradient(0)}, context.attributes());
  };
}

FLEET_OP(rope_grad) { define_rotation(def, "dy", "dx"); }

}  // namespace fleet
