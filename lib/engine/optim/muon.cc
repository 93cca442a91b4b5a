// muon (Jordan, 2024, "Muon: An optimizer for hidden layers in neural networks") in PyTorch's form:
//   m = lerp(m, g, 1 - momentum);  u = use_nesterov ? lerp(g, m, momentum) : m
//   X = u / max(|u|, epsilon);  ns_steps times: A = X X', X = 3.4445 X + (-4.775 A + 2.0315 A^2) X
//   p -= lr weight_decay p + lr ratio X
// for parameters of at least two dimensions, as matrices of output rows (a convolution: out x all
// else, as timm). A matrix with more rows than columns is transposed, which costs nothing here: the
// powers of X' X stand on its other side. If that takes fewer operations, up to five iterations run
// on A: the last X is a polynomial of the first A times the first X, to less than 1e-3 of the
// largest element. ratio: sqrt(max(1, rows / columns)) or, with adjust_rate
// match_rms_adamw, .2 sqrt(max(rows, columns)). PyTorch computes X in bfloat16; here it is float32.
//
// Other parameters, and those of adamw_parameters, are updated by AdamW.
//
// muon_momentum: u and the new m; g is gradient * gradient_scale. If found_inf is not 0, m stays.
#include <algorithm>
#include <cmath>

#include "ops/mixed_precision.h"
#include "optim/optimizer.h"
#include "optim/parameter_groups.h"
#include "optim/row_update.h"
#include "optim/update_op.h"

namespace fleet {
namespace {

constexpr double kFirst = 3.4445, kThird = -4.7750, kFifth = 2.0315;

// Appends the operations that make a matrix nearly orthogonal.
class NewtonSchulz {
 public:
  NewtonSchulz(UpdateContext& context, std::string name)
      : program_(context.program()), section_(context.section()), name_(std::move(name)) {}

  VarId normalize(VarId x, double epsilon) {
    const VarId squares = emit("sum_of_squares", {x});
    const VarId scale = emit("clip_scale", {squares}, {{"clip_norm", epsilon}});
    const VarId factor = emit("scale", {scale}, {{"scale", 1 / epsilon}});
    return emit("elementwise_mul", {x, factor});
  }

  VarId run(VarId x, int64_t iterations) {
    if (is_cheaper_by_gram(program_.var(x).shape, iterations)) return by_gram(x, iterations);
    for (int64_t i = 0; i < iterations; ++i) {
      x = combine(x, kFirst, times(x, odd_powers(gram_of(x))), 1);
    }
    return x;
  }

  VarId emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes = {}) {
    return program_.emit(section_, type, std::move(inputs), std::move(attributes), name_)[0];
  }

 private:
  // Small matrices keep the rounding of the formula. So do more iterations: each multiplies the
  // rounding of A's small eigenvalues by 3.4445^2, which ends in values that are not finite.
  static constexpr int64_t kMostByGram = 5;
  static bool is_cheaper_by_gram(const Shape& shape, int64_t iterations) {
    if (iterations > kMostByGram) return false;
    const auto [low, high] = std::minmax(shape[0], shape[1]);
    const auto each = static_cast<double>(low), other = static_cast<double>(high);
    const auto count = static_cast<double>(iterations);
    return low >= 64 && 4 * other + (8 * count - 6) * each < count * (4 * other + 2 * each);
  }

  // With Q = b A + c A^2, an iteration is X = (a + Q) X and A = (a + Q) A (a + Q). The product of
  // the factors is first + rest, first a number.
  VarId by_gram(VarId x, int64_t iterations) {
    VarId gram = gram_of(x), rest = kNoVar;
    double first = 1;
    for (int64_t i = 0; i < iterations; ++i) {
      const VarId powers = odd_powers(gram);
      if (i > 0) {
        const VarId product = emit("matmul", {powers, rest});
        rest = combine(combine(rest, kFirst, product, 1), 1, powers, first);
      } else {
        rest = powers;
      }
      first *= kFirst;
      if (i + 1 == iterations) break;
      const VarId left = combine(gram, kFirst, emit("matmul", {powers, gram}), 1);
      gram = combine(left, kFirst, emit("matmul", {left, powers}), 1);
    }
    return combine(x, first, times(x, rest), 1);
  }

  bool is_tall(VarId x) const { return program_.var(x).shape[0] > program_.var(x).shape[1]; }
  VarId gram_of(VarId x) {
    const bool tall = is_tall(x);
    return emit("matmul", {x, x}, {{"transpose_x", tall}, {"transpose_y", !tall}});
  }
  VarId odd_powers(VarId gram) {
    return combine(gram, kThird, emit("matmul", {gram, gram}), kFifth);
  }
  VarId times(VarId x, VarId factor) {
    return emit("matmul", is_tall(x) ? std::vector{x, factor} : std::vector{factor, x});
  }
  VarId combine(VarId x, double a, VarId y, double b) {
    const VarId first = a == 1 ? x : emit("scale", {x}, {{"scale", a}});
    const VarId second = b == 1 ? y : emit("scale", {y}, {{"scale", b}});
    return emit("sum", {first, second});
  }

  Program& program_;
  const SectionId section_;
  const std::string name_;
};

double ratio_of(const Shape& matrix, const std::string& adjust) {
  const auto rows = static_cast<double>(matrix[0]), columns = static_cast<double>(matrix[1]);
  if (adjust == "original") return std::sqrt(std::max(1.0, rows / columns));
  return 0.2 * std::sqrt(std::max(rows, columns));
}

void append_adamw(UpdateContext& context, const Update& update) {
  const Settings& settings = context.settings();
  Update scaled = update;
  scaled.learning_rate = context.scaled_rate(update.learning_rate, settings.number("adamw_rate"));
  append_update_op(
      context, scaled, "adam",
      {context.state(update.parameter, "moment1"), context.state(update.parameter, "moment2")},
      {{"beta1", settings.number("adamw_beta1")},
       {"beta2", settings.number("adamw_beta2")},
       {"epsilon", settings.number("adamw_epsilon")},
       {"decoupled", true}});
}

void append_muon(UpdateContext& context, const Update& update) {
  if (update.rows != kNoVar) return append_row_update_op(context, update, "muon", {}, {}, {});
  Program& program = context.program();
  const Settings& settings = context.settings();
  const Var parameter = program.var(update.parameter);
  const Shape shape = parameter.shape, matrix = {shape[0], shape.elements() / shape[0]};
  const VarId gradient =
      in_float32(program, context.section(), update.gradient, parameter.name + ".gradient.float32");
  const VarId momentum = context.state(update.parameter, "momentum", shape);
  VarId x = program.temporary(parameter.name + ".muon");
  program.append(context.section(), "muon_momentum",
                 {gradient, update.gradient_scale, context.scaling().found_inf, momentum},
                 {x, momentum},
                 {{"momentum", settings.number("momentum")},
                  {"use_nesterov", settings.boolean("use_nesterov")},
                  {kUpdatedParameter, parameter.name}});
  NewtonSchulz steps(context, parameter.name + ".muon");
  if (shape != matrix) x = steps.emit("reshape", {x}, {{"shape", to_attribute(matrix)}});
  x = steps.normalize(x, settings.number("epsilon"));
  x = steps.run(x, settings.integer("ns_steps"));
  x = steps.emit("scale", {x}, {{"scale", ratio_of(matrix, settings.text("adjust_rate"))}});
  if (shape != matrix) x = steps.emit("reshape", {x}, {{"shape", to_attribute(shape)}});
  append_step(context, update, x);
}

}  // namespace

FLEET_OP(muon_momentum) {
  def.inputs = {{"gradient"},
                {"gradient_scale", Slot::kOptional},
                {"found_inf", Slot::kOptional},
                {"momentum"}};
  def.outputs = {{"step"}, {"momentum"}};
  def.attributes = {{"momentum", 0.95}, {"use_nesterov", true}};
  def.inplace = {{3, 1}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) {
    FLEET_CHECK(context.shape(0) == context.shape(3), "muon_momentum: a state of another shape");
    context.set_like(0, 0);
    context.set_like(1, 3);
  };
}

FLEET_OPTIMIZER(muon) {
  def.help =
      "steps along the nearest orthogonal matrix of the momentum (Muon); AdamW for parameters of "
      "one dimension and for adamw_parameters; decoupled weight decay";
  def.schema.number("momentum", 0.95, 0, 1, "fraction of the momentum that is kept")
      .boolean("use_nesterov", true, "Nesterov momentum")
      .integer("ns_steps", 5, 1, 99, "iterations that make a step orthogonal")
      .number("epsilon", 1e-7, 1e-30, 1, "smallest norm that a step is divided by")
      .choice("adjust_rate", "original", {"original", "match_rms_adamw"},
              "factor of the rate of a matrix: sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, "
              "columns)), which suits rates of adamw")
      .texts("adamw_parameters", {},
             "shell patterns of parameters that AdamW updates, such as embeddings and the head")
      .number("adamw_rate", 1, 1e-6, 1e6, "factor of the rate for parameters that AdamW updates")
      .number("adamw_beta1", 0.9, 0, kMaxDecay, "decay of AdamW's first moment")
      .number("adamw_beta2", 0.999, 0, kMaxDecay, "decay of AdamW's second moment")
      .number("adamw_epsilon", 1e-8, 0, 1, "added to the root of AdamW's second moment");
  def.weight_decay = 0.1;
  def.append = [](UpdateContext& context, const Update& update) {
    const Var& parameter = context.program().var(update.parameter);
    const bool is_matrix = parameter.shape.rank() >= 2 && parameter.shape.elements() > 0;
    const bool excluded = matches_any(context.settings().texts("adamw_parameters"), parameter.name);
    is_matrix && !excluded ? append_muon(context, update) : append_adamw(context, update);
  };
}

}  // namespace fleet
