// The formula is interpreted tile by tile: each line is a vectorized loop over a few hundred
// elements, whose operands and result stay in the L1 cache. Each input is read once from memory,
// and each output is written once.
#include <array>

#include "backend/cpu/broadcast_loops.h"
#include "backend/cpu/simd_math.h"
#include "ops/element_formula.h"

namespace fleet {
namespace {

constexpr int64_t kTile = 512;  // elements

struct Numbers {
  float p, q;
};
using Line = void (*)(const float* a, const float* b, const float* c, float* y, int64_t count,
                      Numbers n);

// A function of one line. FLEET_SIMD does not work with templates of lambdas, so each is written
// out.
#define FLEET_LINE(name, expression)                                                     \
  FLEET_SIMD void name([[maybe_unused]] const float* a, [[maybe_unused]] const float* b, \
                       [[maybe_unused]] const float* c, float* y, int64_t count,         \
                       [[maybe_unused]] Numbers n) {                                     \
    _Pragma("omp simd") for (int64_t i = 0; i < count; ++i) y[i] = expression;           \
  }

FLEET_LINE(scale, a[i] * n.p + n.q)
FLEET_LINE(add, a[i] + b[i])
FLEET_LINE(subtract, a[i] - b[i])
FLEET_LINE(multiply, a[i] * b[i])
FLEET_LINE(multiply_add, a[i] * b[i] + c[i])
FLEET_LINE(multiply_plus, a[i] * b[i] + n.q)
FLEET_LINE(tanh, cpu::fast_tanh(a[i]))
FLEET_LINE(sigmoid, cpu::fast_sigmoid(a[i]))
FLEET_LINE(exp, cpu::fast_exp(a[i]))
FLEET_LINE(erf, cpu::fast_erf(a[i]))

// Conditions on values, not memory: a conditional load would prevent vectorization.
FLEET_INLINE float clamped(float a, float p, float q) { return a < p ? p : (a > q ? q : a); }
FLEET_INLINE float above(float a, float p, float b) { return a <= p ? 0 : b; }
FLEET_INLINE float below(float a, float q, float b) { return a >= q ? 0 : b; }
FLEET_INLINE float within(float a, float p, float q, float b) {
  return ((a >= p) & (a <= q)) ? b : 0;
}
FLEET_LINE(clamp, clamped(a[i], n.p, n.q))
FLEET_LINE(where_above, above(a[i], n.p, b[i]))
FLEET_LINE(where_below, below(a[i], n.q, b[i]))
FLEET_LINE(where_within, within(a[i], n.p, n.q, b[i]))
#undef FLEET_LINE

template <typename T>
FLEET_SIMD void round(const float* a, const float*, const float*, float* y, int64_t count,
                      Numbers) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    T narrow;
    narrow = a[i];
    y[i] = narrow;
  }
}

template <typename T>
FLEET_SIMD void widen(const T* x, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i];
}

template <typename T>
FLEET_SIMD void store(const float* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i];
}

// By ElementCode; null: an input.
const Line kLines[] = {nullptr,         scale,         add,     subtract,    multiply,
                       multiply_add,    multiply_plus, clamp,   where_above, where_below,
                       where_within,    tanh,          sigmoid, exp,         erf,
                       round<BFloat16>, round<Float16>};
static_assert(std::size(kLines) == static_cast<size_t>(ElementCode::kFloat16) + 1);

// An input: read from memory if it has the outputs' shape; otherwise as a run of consecutive
// elements, or one repeated element.
struct Input {
  const char* data;
  DType dtype;
  bool spreads;
  int64_t middle, inner;  // for a broadcast input, see Broadcast

  // Elements begin..begin + count - 1, either in `place` or at their own address.
  const float* read(int64_t begin, int64_t count, float* place) const {
    if (!spreads && dtype == DType::kFloat32) return reinterpret_cast<const float*>(data) + begin;
    cpu::with_float_type(dtype, [&]<typename T>(T) {
      const T* const x = reinterpret_cast<const T*>(data);
      if (!spreads) return widen(x + begin, place, count);
      for (int64_t i = 0; i < count;) {
        const int64_t unit = (begin + i) / inner, m = unit % middle;
        if (inner == 1) {
          const int64_t run = std::min(count - i, middle - m);
          widen(x + m, place + i, run);
          i += run;
        } else {
          const int64_t run = std::min(count - i, (unit + 1) * inner - (begin + i));
          std::fill_n(place + i, run, static_cast<float>(x[m]));
          i += run;
        }
      }
    });
    return place;
  }
};

struct Output {
  char* data;
  DType dtype;
  int value;    // its register
  bool direct;  // computed in the output's memory
};

class Formula {
 public:
  explicit Formula(const KernelContext& context)
      : program_(assign_registers(formula_of(context.attributes()))) {
    FLEET_CHECK(program_.registers <= kMaxElementRegisters, "a formula uses too many registers");
    const Shape& shape = context.outputs[0].shape;
    const std::vector<int64_t>& axes = context.attributes().integers("axes");
    for (size_t i = 0; i < context.inputs.size(); ++i) {
      const Argument& x = context.inputs[i];
      const Broadcast b = *broadcast_of(shape, x.shape, axes[i]);
      inputs_.push_back({static_cast<const char*>(x.data), x.dtype, x.shape != shape && !b.same(),
                         b.middle, b.inner});
    }
    for (size_t o = 0; o < context.outputs.size(); ++o) {
      const Argument& y = context.outputs[o];
      outputs_.push_back({static_cast<char*>(y.data), y.dtype, program_.results[o],
                          y.dtype == DType::kFloat32 && is_free(context, o)});
    }
    for (const ElementCodeLine& line : program_.lines)
      functions_.push_back(kLines[static_cast<size_t>(line.code)]);
    find_places();
  }

  void run(int64_t begin, int64_t end) const {
    alignas(64) float registers[kMaxElementRegisters * kTile];
    for (int64_t i = begin; i < end; i += kTile) tile(i, std::min(kTile, end - i), registers);
  }

 private:
  // Whether no input shares the output's memory: it then need not wait for the tile's end.
  static bool is_free(const KernelContext& context, size_t o) {
    return std::none_of(context.inputs.begin(), context.inputs.end(),
                        [&](const Argument& x) { return x.data == context.outputs[o].data; });
  }

  // Lets the line that computes an output's value write to the output directly.
  void find_places() {
    direct_.assign(program_.lines.size(), -1);
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (!outputs_[o].direct) continue;
      size_t maker = program_.lines.size();
      while (program_.lines[maker - 1].target != outputs_[o].value) --maker;
      --maker;
      const bool taken = direct_[maker] >= 0;
      outputs_[o].direct = !taken && functions_[maker];
      if (outputs_[o].direct) direct_[maker] = static_cast<int>(o);
    }
  }

  void tile(int64_t begin, int64_t count, float* registers) const {
    std::array<const float*, kMaxElementRegisters> values;
    for (size_t i = 0; i < program_.lines.size(); ++i) {
      const ElementCodeLine& line = program_.lines[i];
      float* place = registers + line.target * kTile;
      if (direct_[i] >= 0) place = reinterpret_cast<float*>(outputs_[direct_[i]].data) + begin;
      if (!functions_[i]) {
        values[line.target] = inputs_[line.a].read(begin, count, place);
        continue;
      }
      functions_[i](values[line.a], values[line.b], values[line.c], place, count, {line.p, line.q});
      values[line.target] = place;
    }
    for (const Output& output : outputs_) {
      if (output.direct) continue;
      cpu::with_float_type(output.dtype, [&]<typename T>(T) {
        T* const y = reinterpret_cast<T*>(output.data) + begin;
        if (static_cast<const void*>(values[output.value]) == y) return;
        store(values[output.value], y, count);
      });
    }
  }

  ElementProgram program_;
  std::vector<Line> functions_;  // by line; null: an input
  std::vector<int> direct_;      // by line: the output it writes to, or -1
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

void layouts(LayoutQuery& query) {
  const Shape& shape = query.output_var(0).shape;
  const auto has_shape = [&](int i) { return query.input_var(i).shape == shape; };
  std::optional<Layout> common;
  for (int i = 0; i < query.input_count(); ++i) {
    if (!has_shape(i)) return;  // broadcast works on plain tensors only
    if (!common) common = query.input(i);
  }
  if (!common || common->is_opaque()) return;
  const bool padded = common->elements() != shape.elements();
  if (padded && !formula_of(query.attributes()).maps_zeros_to_zeros()) return;
  for (int i = 0; i < query.input_count(); ++i) query.need(i, *common);
  for (int o = 0; o < query.output_count(); ++o) query.give(o, *common);
}

}  // namespace

FLEET_KERNEL(cpu, fused_elementwise) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
  def.layouts = layouts;
  def.create = [](KernelContext& context) {
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([formula = Formula(context), count](Stream&) {
      cpu::parallel_ranges(count, [&](int64_t begin, int64_t end) { formula.run(begin, end); });
    });
  };
}

}  // namespace fleet
