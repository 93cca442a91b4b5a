// schedule_free_adamw and schedule_free_sgd (Defazio et al., 2024, "The Road Less Scheduled"), as
// the package schedulefree 1.4 of its authors, t = number of updates, beta = beta1 or momentum:
//   v = beta2 v + (1 - beta2) g^2;  d = g / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay y
//   (sgd: d = g + weight_decay y)
//   c = l^2 / the sum of l^2 of all updates, l the largest learning rate so far
//   z -= lr d;  x = (1 - c) x + c z;  y = beta x + (1 - beta) z
// Gradients are taken at y, which the parameter holds, and evaluations use x. z and x begin as y.
// The update needs no x: y = (1 - c) y + c z + lr (beta (1 - c) - 1) d, with z of before. Since z
// is a mix of x and y, x is a moving average of y: x = (1 - a) x + a y, a = c / (1 - beta + beta
// c). That average is kept as train.ema keeps its own (optim/ema.h).
//
// schedule_free_weight: weight float32 [1] = c and average_rate float32 [1] = a; updates the states
// largest_rate, float32 [1], and sum, unless found_inf is not 0. sum: float32 [2], whose elements
// add up to the sum in twice the digits, so that it still grows after millions of updates.
#include "ops/mixed_precision.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {
namespace {

constexpr char kWeight[] = "optimizer.average_weight";

void define(OpDef& def, const std::vector<std::string>& states) {
  define_update_op(def, /*needs_step=*/true, states);
  def.inputs.insert(def.inputs.end() - 1, {"weight"});
}

// c is the same for all parameters: the factors of their rates cancel.
VarId weight_of(UpdateContext& context, const Update& update, double beta) {
  Program& program = context.program();
  if (const VarId known = program.find(kWeight); known != kNoVar) return known;
  const VarId largest = program.state("optimizer.largest_rate", {1}, Init());
  const VarId sum = program.state("optimizer.rate_squares", {2}, Init());
  const VarId weight = program.temporary(kWeight), rate = program.temporary(kAverageRate);
  program.append(context.section(), "schedule_free_weight",
                 {update.learning_rate, context.scaling().found_inf, largest, sum},
                 {weight, rate, largest, sum}, {{"beta", beta}});
  return weight;
}

}  // namespace

FLEET_OP(schedule_free_weight) {
  def.inputs = {{"learning_rate"}, {"found_inf", Slot::kOptional}, {"largest_rate"}, {"sum"}};
  def.outputs = {{"weight"}, {"average_rate"}, {"largest_rate"}, {"sum"}};
  def.attributes = {{"beta", 0.9}};
  def.inplace = {{2, 2}, {3, 3}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) {
    for (const int output : {0, 1}) context.set(output, {1}, DType::kFloat32);
    for (const int output : {2, 3}) context.set_like(output, output);
  };
}

FLEET_OP(schedule_free_adamw) {
  define(def, {"z", "moment2"});
  def.attributes = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.0}};
}

FLEET_OP(schedule_free_sgd) {
  define(def, {"z"});
  def.attributes = {{"momentum", 0.9}, {"weight_decay", 0.0}};
}

FLEET_OPTIMIZER(schedule_free_adamw) {
  def.averages = true;
  def.help =
      "AdamW whose weights of evaluations are an average, without a schedule but a warm-up "
      "(schedule-free)";
  def.schema.number("beta1", 0.9, 0, kMaxDecay, "part of the average in the point of gradients")
      .number("beta2", 0.999, 0, kMaxDecay, "decay of the second moment")
      .number("epsilon", 1e-8, 0, 1, "added to the root of the second moment");
  def.append = [](UpdateContext& context, const Update& update) {
    const VarId weight = weight_of(context, update, context.settings().number("beta1"));
    append_update_op(
        context, update, "schedule_free_adamw",
        {context.state(update.parameter, "z"), context.state(update.parameter, "moment2")}, {},
        {weight});
  };
}

FLEET_OPTIMIZER(schedule_free_sgd) {
  def.averages = true;
  def.help =
      "gradient descent whose weights of evaluations are an average, without a schedule but a "
      "warm-up (schedule-free)";
  def.schema.number("momentum", 0.9, 0, kMaxDecay, "part of the average in the point of gradients");
  def.append = [](UpdateContext& context, const Update& update) {
    const VarId weight = weight_of(context, update, context.settings().number("momentum"));
    append_update_op(context, update, "schedule_free_sgd", {context.state(update.parameter, "z")},
                     {}, {weight});
  };
}

}  // namespace fleet
