#include "tests/engine/ops/op_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "exec/kernel.h"
#include "ops/mixed_precision.h"
#include "passes/backward.h"
#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

// Calls body with a value of the type that dtype stands for.
template <typename Body>
void with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      return body(float());
    case DType::kFloat64:
      return body(double());
    case DType::kFloat16:
      return body(Float16());
    case DType::kBFloat16:
      return body(BFloat16());
    case DType::kInt64:
      return body(int64_t());
    case DType::kInt32:
      return body(int32_t());
    case DType::kUInt8:
      return body(uint8_t());
  }
}

// Rounds to the type, so that both sides see the same values.
Values rounded(Values values, DType dtype) {
  with_type(dtype, [&]<typename T>(T) {
    for (double& value : values) value = static_cast<double>(static_cast<T>(value));
  });
  return values;
}

Values draw(std::mt19937_64& random, int64_t count, double low, double high, DType dtype) {
  Values values(count);
  for (double& value : values) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    value = low + (high - low) * unit;
  }
  return rounded(values, dtype);
}

// inputs: of a gradient, where it was taken: at a kink a difference quotient is none.
void expect_near(const Values& got, const Values& want, double tolerance, const std::string& what,
                 const Values* inputs = nullptr) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double scale = 1e-3;
  for (double value : want) scale = std::max(scale, std::abs(value));
  int shown = 0;
  for (size_t i = 0; i < got.size() && shown < 5; ++i) {
    if (std::abs(got[i] - want[i]) <= tolerance * scale) continue;
    ADD_FAILURE() << what << "[" << i << "] is " << got[i] << ", should be " << want[i]
                  << (inputs ? " at x = " + std::to_string((*inputs)[i]) : "");
    ++shown;
  }
}

// The central differences at one point. Layouts share them: a reference is slow, and computed twice
// for each element.
struct Differences {
  std::vector<Values> inputs, seeds;  // the point
  std::vector<Values> gradients;      // by input; empty if not differentiated
};

class Check {
 public:
  // differences: those of earlier checks of the same reference; run() adds its own.
  Check(const OpCheck& check, Device& device, PlanOptions options,
        std::vector<Differences>& differences)
      : check_(check),
        device_(device),
        options_(std::move(options)),
        random_(check.seed),
        known_differences_(differences) {}

  std::vector<Values> run() {
    build();
    if (check_.check_gradient) add_backward();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (check_.inputs[i].layout) options_.initial_layouts[inputs_[i]] = *check_.inputs[i].layout;
    }
    std::vector<VarId> keep;
    for (VarId id : outputs_) {
      if (id != kNoVar) keep.push_back(id);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const VarId gradient = inputs_[i] == kNoVar ? kNoVar : program_.gradient(inputs_[i]);
      if (gradient != kNoVar) keep.push_back(gradient);
    }
    Executor executor(plan_program(program_, keep, options_), device_, nullptr);
    for (int repeat = 0; repeat < 2; ++repeat) {  // twice: nothing may be left from the first run
      set_inputs(executor);
      executor.run({});
      executor.synchronize();
    }
    compare_outputs(executor);
    if (check_.check_gradient) compare_gradients(executor);
    std::vector<Values> results;
    for (VarId id : outputs_) results.push_back(id == kNoVar ? Values() : fetch(executor, id));
    return results;
  }

 private:
  void build() {
    forward_ = program_.add_section("forward", {});
    for (size_t i = 0; i < check_.inputs.size(); ++i) {
      const CheckInput& input = check_.inputs[i];
      inputs_.push_back(kNoVar);
      values_.emplace_back();
      if (!input.present) continue;
      Var var{.name = "input" + std::to_string(i),
              .kind = input.kind,
              .dtype = dtype_of(input),
              .shape = input.shape,
              .init = {},
              .shape_known = true};
      inputs_.back() = program_.add_var(var);
      values_.back() = input.values.empty()
                           ? draw(random_, input.shape.elements(), input.low, input.high, var.dtype)
                           : rounded(input.values, var.dtype);
    }
    references_ = check_.reference(values_);
    const OpDef& def = op_registry().get(check_.type);
    for (size_t i = 0; i < def.outputs.size(); ++i) {
      const bool make = i < references_.size() || def.outputs[i].kind != Slot::kOptional ||
                        check_.optional_outputs;
      outputs_.push_back(make ? program_.temporary("output" + std::to_string(i)) : kNoVar);
    }
    for (const auto& [output, input] : check_.updates) outputs_[output] = inputs_[input];
    program_.append(forward_, check_.type, inputs_, outputs_, check_.attributes);
  }

  void add_backward() {
    std::vector<std::pair<VarId, VarId>> seeds;
    seed_values_.resize(references_.size());
    seed_vars_.resize(references_.size(), kNoVar);
    for (size_t i = 0; i < references_.size(); ++i) {
      if (references_[i].empty() || is_update(i)) continue;
      const Var output = program_.var(outputs_[i]);
      if (!is_floating(output.dtype)) continue;
      seed_vars_[i] = program_.feed("seed" + std::to_string(i), output.dtype, output.shape);
      seed_values_[i] = draw(random_, output.shape.elements(), -1, 1, output.dtype);
      seeds.emplace_back(outputs_[i], seed_vars_[i]);
    }
    std::vector<VarId> wrt;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (differentiated(i)) wrt.push_back(inputs_[i]);
    }
    append_backward_from(program_, forward_, seeds, wrt);
  }

  bool is_update(size_t output) const {
    for (const auto& [out, in] : check_.updates) {
      if (out == static_cast<int>(output)) return true;
    }
    return false;
  }

  bool differentiated(size_t i) const {
    const CheckInput& input = check_.inputs[i];
    return input.present && input.differentiate && is_floating(dtype_of(input));
  }

  DType dtype_of(const CheckInput& input) const { return input.dtype.value_or(check_.dtype); }

  void set(Executor& executor, VarId id, const Values& values) {
    with_type(program_.var(id).dtype, [&]<typename T>(T) {
      std::vector<T> typed(values.size());
      std::transform(values.begin(), values.end(), typed.begin(),
                     [](double value) { return static_cast<T>(value); });
      executor.write(id, typed);
    });
  }

  void set_inputs(Executor& executor) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] != kNoVar) set(executor, inputs_[i], values_[i]);
    }
    for (size_t i = 0; i < seed_vars_.size(); ++i) {
      if (seed_vars_[i] != kNoVar) set(executor, seed_vars_[i], seed_values_[i]);
    }
  }

  Values fetch(Executor& executor, VarId id) {
    const Var& var = executor.program().var(id);
    if (executor.plan().vars[id].layout.is_opaque()) return {};
    Values values;
    with_type(var.dtype, [&]<typename T>(T) {
      const auto raw = executor.values<T>(id);
      values.assign(raw.begin(), raw.end());
    });
    return values;
  }

  double tolerance(VarId id, double wanted, double factor) const {
    const double rounding =
        std::max(rounding_tolerance(check_.dtype), rounding_tolerance(program_.var(id).dtype));
    return std::max(wanted, factor * rounding);
  }

  void compare_outputs(Executor& executor) {
    for (size_t i = 0; i < references_.size(); ++i) {
      if (references_[i].empty()) continue;
      expect_near(fetch(executor, outputs_[i]), references_[i],
                  tolerance(outputs_[i], check_.tolerance, 1),
                  check_.type + " output " + std::to_string(i));
    }
  }

  // sum over outputs of seed * output: what the gradients are of.
  double objective() const {
    const std::vector<Values> outputs = check_.reference(values_);
    double sum = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (i >= seed_vars_.size() || seed_vars_[i] == kNoVar) continue;
      for (size_t k = 0; k < outputs[i].size(); ++k) sum += outputs[i][k] * seed_values_[i][k];
    }
    return sum;
  }

  Values differences_of(size_t input) {
    Values numeric(values_[input].size());
    for (size_t k = 0; k < numeric.size(); ++k) {
      double& value = values_[input][k];
      const double here = value;
      value = here + check_.step;
      const double above = objective();
      value = here - check_.step;
      numeric[k] = (above - objective()) / (2 * check_.step);
      value = here;
    }
    return numeric;
  }

  const std::vector<Values>& numeric_gradients() {
    for (const Differences& known : known_differences_) {
      if (known.inputs == values_ && known.seeds == seed_values_) return known.gradients;
    }
    Differences made{values_, seed_values_, {}};
    for (size_t i = 0; i < inputs_.size(); ++i) {
      made.gradients.push_back(differentiated(i) ? differences_of(i) : Values());
    }
    return known_differences_.emplace_back(std::move(made)).gradients;
  }

  void compare_gradients(Executor& executor) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!differentiated(i)) continue;
      const VarId gradient = program_.gradient(inputs_[i]);
      ASSERT_NE(gradient, kNoVar) << check_.type << " input " << i << " has no gradient";
      expect_near(fetch(executor, gradient), numeric_gradients()[i],
                  tolerance(gradient, check_.gradient_tolerance, 2),
                  check_.type + " gradient of input " + std::to_string(i), &values_[i]);
    }
  }

  const OpCheck& check_;
  Device& device_;
  PlanOptions options_;
  std::mt19937_64 random_;
  Program program_;
  SectionId forward_ = 0;
  std::vector<VarId> inputs_, outputs_, seed_vars_;
  std::vector<Values> values_, seed_values_, references_;
  std::vector<Differences>& known_differences_;
};

}  // namespace

double rounding_tolerance(DType dtype) {
  if (dtype == DType::kBFloat16) return 0x1p-7;
  return dtype == DType::kFloat16 ? 0x1p-10 : 0;
}

namespace {

// N, C, H, W with channels innermost, padded to whole blocks.
Layout channels_last(const Shape& shape, int block) {
  if (block == 1 || shape[1] % block == 0) return Layout::channels_last(shape);
  Shape padded = shape;
  padded[1] = (shape[1] + block - 1) / block * block;
  const int64_t pixel = padded[1];
  return Layout::blocked(padded, {shape[2] * shape[3] * pixel, block, shape[3] * pixel, pixel},
                         {{1, block}});
}

bool says_layouts(const OpCheck& check) {
  return std::any_of(check.inputs.begin(), check.inputs.end(),
                     [](const CheckInput& input) { return input.layout.has_value(); });
}

OpCheck in_type(OpCheck check, DType dtype) {
  check.dtype = dtype;
  return check;
}

OpCheck apply(OpCheck check, const OpVariant& variant) {
  check.dtype = variant.dtype;
  for (CheckInput& input : check.inputs) {
    if (input.shape.rank() != 4 || input.dtype.value_or(check.dtype) != check.dtype) continue;
    if (!variant.channels_last && variant.channel_block == 1) continue;
    if (input.kind == VarKind::kFeed) input.kind = VarKind::kState;
    input.layout = channels_last(input.shape, variant.channel_block);
  }
  return check;
}

// For tests that use the returned outputs; the CPU's own run checks the gradient.
std::vector<Values> run_on_cpu(OpCheck check) {
  check.check_gradient = false;
  HostDevice device;
  std::vector<Differences> none;
  return Check(check, device, {.device = &device}, none).run();
}

void skip(const std::string& why) { GTEST_SKIP() << why << "; ran on the CPU"; }

bool lacks_kernel(const Error& error) {
  return error.code() == ErrorCode::kUnsupported &&
         std::string(error.what()).find(": no " + op_plan_options().backend + " kernel") !=
             std::string::npos;
}

// Nothing where there is no such kernel and there need not be one.
std::optional<std::vector<Values>> run(const OpCheck& check,
                                       std::vector<Differences>& differences) {
  try {
    return Check(check, op_device(), op_plan_options(), differences).run();
  } catch (const Error& error) {
    if (!lacks_kernel(error)) throw;
    // Mixed precision runs these in float32 only.
    const bool black =
        mixed_precision_of(op_registry().get(check.type)).precision == Precision::kBlack;
    if (black && check.dtype != DType::kFloat32) return std::nullopt;
    if (!op_may_lack_kernel()) throw;
    skip(error.what());
    return run_on_cpu(check);
  }
}

}  // namespace

std::vector<Values> check_op(const OpCheck& check) {
  std::vector<Differences> differences;
  if (check.dtype != DType::kFloat32) return run(check, differences).value();
  std::vector<Values> first;
  std::set<DType> done;
  for (const OpVariant& variant : op_variants()) {
    // A check that says how its inputs lie is repeated in each type as it is.
    if (says_layouts(check) && !done.insert(variant.dtype).second) continue;
    SCOPED_TRACE(std::string(name_of(variant.dtype)) +
                 (variant.channels_last ? ", channels last" : "") +
                 (variant.channel_block > 1 ? ", channels padded" : ""));
    const auto results = run(
        says_layouts(check) ? in_type(check, variant.dtype) : apply(check, variant), differences);
    if (first.empty() && results) first = *results;
    if (testing::Test::IsSkipped()) break;
  }
  return first;
}

}  // namespace fleet
