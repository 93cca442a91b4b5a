// linear_cross_entropy: the head of a language model and its loss in one operation. With
// logits[row] = head hidden[row] + bias:
//   losses[row] = -log(softmax(logits[row])[label[row]])
//   loss        = sum over rows of row_weight * losses
// hidden [..., H], head [V, H] (an embedding's parameter may be both), labels int64 [...],
// row_weight float32 [...], bias float32 [V] or none; loss float32 [1], losses and hits float32
// [...]. Only `loss` is differentiable. hits: 1 where the label has the largest logit, of equal
// ones the first; a row that does not count has 0. The softmax is computed in float32 whatever the
// type of hidden and head.
//
// Rows labelled `ignore_index` and rows of weight 0 have loss 0 and no gradient. A label of another
// row outside 0..V-1 is an error on the CPU; on a GPU the row's loss is NaN and its gradient 0.
//
// The logits of all rows are never in memory: rows are computed in chunks (linear_cross_entropy.h).
// The gradient rule replaces the operation by linear_cross_entropy_with_gradient, which computes
// the gradients of a chunk while its logits are there (as Liger's fused linear cross entropy:
// Hsu et al., 2024): three products in all, none of them twice. The backward pass multiplies them
// by the gradient of the loss.
#include "ops/arithmetic.h"
#include "ops/label_shape.h"
#include "ops/mixed_precision.h"
#include "ops/recomputation.h"

namespace fleet {
namespace {

const std::vector<SlotDef> kHeadInputs = {{"hidden"},
                                          {"head"},
                                          {"labels", Slot::kRequired, true},
                                          {"row_weight"},
                                          {"bias", Slot::kOptional}};
constexpr int kBias = 4;                                        // input
constexpr int kHits = 2, kDhidden = 3, kDhead = 4, kDbias = 5;  // outputs

const std::map<std::string, Attribute> kHeadAttributes = {{"ignore_index", int64_t{-100}},
                                                          {"chunk", int64_t{0}}};

// The gradients of float16 are kept multiplied by this: those of most logits, about 1 / V, would be
// 0 in it. A power of two, which changes no digit.
constexpr double kFloat16Scale = 1024;

void infer_head_loss(ShapeContext& context) {
  const Shape samples = samples_shape(context, 0, 2);
  const Shape &hidden = context.shape(0), &head = context.shape(1), &weight = context.shape(3);
  context.require(head.rank() == 2 && head[1] == hidden[hidden.rank() - 1],
                  "head " + head.text() + " does not fit hidden " + hidden.text() +
                      ": it is [classes, " + std::to_string(hidden[hidden.rank() - 1]) + "]");
  context.require(context.dtype(0) == context.dtype(1),
                  std::string("hidden is ") + name_of(context.dtype(0)) + " and head " +
                      name_of(context.dtype(1)) + ": they must be of one type");
  context.require(
      weight == samples || weight == context.shape(2),
      "row_weight " + weight.text() + " does not fit labels " + context.shape(2).text());
  context.require(context.dtype(3) == DType::kFloat32, "row_weight is float32");
  context.require(!context.has_input(kBias) || (context.shape(kBias) == Shape{head[0]} &&
                                                context.dtype(kBias) == DType::kFloat32),
                  "bias is float32 " + Shape{head[0]}.text());
  context.require(context.attributes().integer("chunk") >= 0, "chunk must not be negative");
  context.set(0, {1}, DType::kFloat32);
  context.set(1, samples, DType::kFloat32);
  context.set(kHits, samples, DType::kFloat32);
}

double head_products(const Program& program, const Op& op) {
  const Shape &hidden = shape_of(program, op.inputs[0]), &head = shape_of(program, op.inputs[1]);
  return 2 * static_cast<double>(hidden.elements()) * static_cast<double>(head[0]);
}

// Replaces the forward operation by the one that has the gradients as outputs as well.
void compute_gradients_in_forward(GradientContext& context, const std::vector<VarId>& gradients,
                                  const Attributes& attributes) {
  const Op& forward = context.forward();
  std::vector<VarId> outputs = forward.outputs;
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  for (Op& op : context.program().ops()) {
    if (op.def != forward.def || op.outputs != forward.outputs) continue;
    Op made = context.program().make_op(op.section, op.type() + "_with_gradient", op.inputs,
                                        outputs, attributes);
    made.stream = op.stream;
    made.after = op.after;
    op = std::move(made);
    return;
  }
  context.require(false, "the operation is not in its program");
}

void head_loss_gradient(GradientContext& context) {
  context.require(context.output_gradient(1) == kNoVar && context.output_gradient(kHits) == kNoVar,
                  "the losses of the rows are not differentiable: use the output loss");
  const bool half = context.input_var(0).dtype == DType::kFloat16;
  const double scale = half ? kFloat16Scale : 1;
  std::vector<VarId> made;
  for (const int i : {0, 1, kBias}) {
    made.push_back(context.needs(i)
                       ? context.program().temporary(context.input_var(i).name + "@SAVED_GRAD")
                       : kNoVar);
  }
  Attributes attributes = context.attributes();
  attributes.set("gradient_scale", scale);
  compute_gradients_in_forward(context, made, attributes);
  context.append(
      "linear_cross_entropy_grad", {made[0], made[1], context.output_gradient(0), made[2]},
      {context.input_gradient(0), context.input_gradient(1), context.input_gradient(kBias)},
      {{"gradient_scale", scale}, {"to", std::string(name_of(context.input_var(0).dtype))}});
}

}  // namespace

FLEET_OP(linear_cross_entropy) {
  def.help =
      "the loss of softmax(hidden head^T + bias), summed with a weight for each row, without the "
      "logits of all rows in memory: they are computed in chunks of `chunk` rows (0: chosen by "
      "size); rows "
      "labelled ignore_index or of weight 0 are left out";
  def.inputs = kHeadInputs;
  def.outputs = {{"loss"}, {"losses"}, {"hits", Slot::kOptional}};
  def.attributes = kHeadAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<MixedPrecision>().float32_inputs = {3, kBias};
  def.add_trait<Arithmetic>().operations = head_products;
  def.infer = infer_head_loss;
  def.gradient = head_loss_gradient;
}

// The same, with the gradients of sum(row_weight * losses) times gradient_scale. dhead and dbias
// are float32, in which their chunks are added.
FLEET_OP(linear_cross_entropy_with_gradient) {
  def.inputs = kHeadInputs;
  def.outputs = {{"loss"},
                 {"losses"},
                 {"hits", Slot::kOptional},
                 {"dhidden", Slot::kOptional},
                 {"dhead", Slot::kOptional},
                 {"dbias", Slot::kOptional}};
  def.attributes = kHeadAttributes;
  def.attributes["gradient_scale"] = 1.0;
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<MixedPrecision>().float32_inputs = {3, kBias};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.add_trait<KeepsResults>();
  def.add_trait<Arithmetic>().operations = [](const Program& program, const Op& op) {
    const int products = 1 + (op.outputs[kDhidden] != kNoVar) + (op.outputs[kDhead] != kNoVar);
    return products * head_products(program, op);
  };
  def.infer = [](ShapeContext& context) {
    infer_head_loss(context);
    context.set_like(kDhidden, 0);
    context.set(kDhead, context.shape(1), DType::kFloat32);
    if (context.has_input(kBias)) context.set_like(kDbias, kBias);
  };
}

// dhidden = saved_dhidden * dloss / gradient_scale, and dhead and dbias alike; dhidden and dhead in
// the type `to`.
FLEET_OP(linear_cross_entropy_grad) {
  def.inputs = {{"saved_dhidden", Slot::kOptional},
                {"saved_dhead", Slot::kOptional},
                {"dloss"},
                {"saved_dbias", Slot::kOptional}};
  def.outputs = {
      {"dhidden", Slot::kOptional}, {"dhead", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = {{"gradient_scale", 1.0}, {"to", std::string("float32")}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.inplace = {{0, 0}, {1, 1}, {3, 2}};
  def.infer = [](ShapeContext& context) {
    const DType to = to_dtype(context.attributes().text("to"));
    for (int i = 0; i < 2; ++i) {
      if (context.has_input(i)) context.set(i, context.shape(i), to);
    }
    if (context.has_input(3)) context.set_like(2, 3);
  };
}

}  // namespace fleet
