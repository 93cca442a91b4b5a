// Every thread interprets the formula for a few consecutive elements. The formula's registers are
// in shared memory, where they can be indexed; a thread uses only its own. Each input is read once
// from device memory, and each output is written once.
#include "backend/cuda/broadcast_loops.h"
#include "ops/element_formula.h"

namespace fleet {
namespace {

constexpr int kThreads = 128, kElements = 4;  // per block, per thread
using Values = cuda::Pack<float, kElements>;

static_assert(kMaxElementRegisters * kThreads * sizeof(Values) <= 48 << 10);

enum class Kind : int { kFloat32, kFloat16, kBFloat16 };

Kind kind_of(DType dtype) {
  if (dtype == DType::kFloat32) return Kind::kFloat32;
  return dtype == DType::kFloat16 ? Kind::kFloat16 : Kind::kBFloat16;
}

struct Input {
  const void* data;
  Kind kind;
  bool spreads;
  cuda::BroadcastLoop loop;  // for a broadcast input
};
struct Output {
  void* data;
  Kind kind;
  int value;
};
struct Line {
  int8_t code, target, a, b, c;
  float p, q;
};

// All parameters of a launch, by value, so that it may be recorded in a CUDA graph.
struct Code {
  int lines, outputs;
  int64_t count;
  bool aligned;
  Line line[kMaxElementLines];
  Input input[kMaxElementInputs];
  Output output[kMaxElementOutputs];
};
static_assert(sizeof(Code) <= 4096, "parameters of a kernel");

template <typename T>
__device__ Values read_as(const Input& x, int64_t begin, int live, bool wide) {
  const T* const data = static_cast<const T*>(x.data);
  if (!x.spreads && wide) return cuda::load_floats<kElements>(data, begin);
  Values values{};
  for (int i = 0; i < live; ++i) {
    if (!x.spreads) {
      values.at[i] = cuda::to_float(data[begin + i]);
      continue;
    }
    const int64_t m = x.loop.of(begin + i);
    values.at[i] = m < 0 ? 0 : cuda::to_float(data[m]);
  }
  return values;
}

__device__ Values read(const Input& x, int64_t begin, int live, bool wide) {
  if (x.kind == Kind::kFloat32) return read_as<float>(x, begin, live, wide);
  if (x.kind == Kind::kFloat16) return read_as<__half>(x, begin, live, wide);
  return read_as<__nv_bfloat16>(x, begin, live, wide);
}

template <typename T>
__device__ void write_as(const Output& y, int64_t begin, int live, bool wide,
                         const Values& values) {
  T* const data = static_cast<T*>(y.data);
  if (wide) return cuda::store_floats<kElements>(data, begin, values);
  for (int i = 0; i < live; ++i) data[begin + i] = cuda::from_float<T>(values.at[i]);
}

__device__ void write(const Output& y, int64_t begin, int live, bool wide, const Values& values) {
  if (y.kind == Kind::kFloat32) return write_as<float>(y, begin, live, wide, values);
  if (y.kind == Kind::kFloat16) return write_as<__half>(y, begin, live, wide, values);
  write_as<__nv_bfloat16>(y, begin, live, wide, values);
}

template <typename F>
__device__ Values each(F function) {
  Values values;
#pragma unroll
  for (int i = 0; i < kElements; ++i) values.at[i] = function(i);
  return values;
}

// Computes one line of the formula from the registers it reads.
__device__ Values computed(const Line& line, const Values& a, const Values& b, const Values& c) {
  const float p = line.p, q = line.q;
  switch (static_cast<ElementCode>(line.code)) {
    case ElementCode::kInput:
      break;
    case ElementCode::kScale:
      return each([&](int i) { return a.at[i] * p + q; });
    case ElementCode::kAdd:
      return each([&](int i) { return a.at[i] + b.at[i]; });
    case ElementCode::kSubtract:
      return each([&](int i) { return a.at[i] - b.at[i]; });
    case ElementCode::kMultiply:
      return each([&](int i) { return a.at[i] * b.at[i]; });
    case ElementCode::kMultiplyAdd:
      return each([&](int i) { return a.at[i] * b.at[i] + c.at[i]; });
    case ElementCode::kMultiplyPlus:
      return each([&](int i) { return a.at[i] * b.at[i] + q; });
    case ElementCode::kClamp:
      return each([&](int i) { return a.at[i] < p ? p : (a.at[i] > q ? q : a.at[i]); });
    case ElementCode::kWhereAbove:
      return each([&](int i) { return a.at[i] <= p ? 0 : b.at[i]; });
    case ElementCode::kWhereBelow:
      return each([&](int i) { return a.at[i] >= q ? 0 : b.at[i]; });
    case ElementCode::kWhereWithin:
      return each([&](int i) { return a.at[i] >= p && a.at[i] <= q ? b.at[i] : 0; });
    case ElementCode::kTanh:
      return each([&](int i) { return tanhf(a.at[i]); });
    case ElementCode::kSigmoid:
      return each([&](int i) { return 1 / (1 + expf(-a.at[i])); });
    case ElementCode::kExp:
      return each([&](int i) { return expf(a.at[i]); });
    case ElementCode::kErf:
      return each([&](int i) { return erff(a.at[i]); });
    case ElementCode::kBFloat16:
      return each([&](int i) { return cuda::to_float(cuda::from_float<__nv_bfloat16>(a.at[i])); });
    case ElementCode::kFloat16:
      return each([&](int i) { return cuda::to_float(cuda::from_float<__half>(a.at[i])); });
  }
  return a;
}

__global__ void interpret(Code code) {
  Values* const registers = cuda::dynamic_shared<Values>() + threadIdx.x;
  const int64_t begin = cuda::thread_index() * kElements;
  if (begin >= code.count) return;
  const int live =
      code.count - begin < kElements ? static_cast<int>(code.count - begin) : kElements;
  const bool wide = code.aligned && live == kElements;
  for (int i = 0; i < code.lines; ++i) {
    const Line& line = code.line[i];
    Values* const target = registers + line.target * kThreads;
    if (static_cast<ElementCode>(line.code) == ElementCode::kInput) {
      *target = read(code.input[line.a], begin, live, wide);
    } else {
      *target = computed(line, registers[line.a * kThreads], registers[line.b * kThreads],
                         registers[line.c * kThreads]);
    }
  }
  // Written last, because an output may share an input's memory.
  for (int o = 0; o < code.outputs; ++o) {
    write(code.output[o], begin, live, wide, registers[code.output[o].value * kThreads]);
  }
}

Code code_of(const KernelContext& context, const ElementProgram& program) {
  Code code{.lines = static_cast<int>(program.lines.size()),
            .outputs = static_cast<int>(context.outputs.size()),
            .count = context.outputs[0].layout.elements(),
            .aligned = true,
            .line = {},
            .input = {},
            .output = {}};
  for (size_t i = 0; i < program.lines.size(); ++i) {
    const ElementCodeLine& line = program.lines[i];
    const auto small = [](int value) { return static_cast<int8_t>(value); };
    code.line[i] = {small(static_cast<int>(line.code)),
                    small(line.target),
                    small(line.a),
                    small(line.b),
                    small(line.c),
                    line.p,
                    line.q};
  }
  const Argument& first = context.outputs[0];
  const std::vector<int64_t>& axes = context.attributes().integers("axes");
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const Argument& x = context.inputs[i];
    code.input[i] = {.data = x.data,
                     .kind = kind_of(x.dtype),
                     .spreads = x.shape != first.shape,
                     .loop = {1, 1, 1, 1}};
    if (!code.input[i].spreads) {
      code.aligned = code.aligned && cuda::is_aligned(x.data);
      continue;
    }
    code.input[i].loop = *cuda::broadcast_over(first.shape, first.layout, x.shape, axes[i]);
  }
  for (size_t o = 0; o < context.outputs.size(); ++o) {
    const Argument& y = context.outputs[o];
    code.output[o] = {.data = y.data, .kind = kind_of(y.dtype), .value = program.results[o]};
    code.aligned = code.aligned && cuda::is_aligned(y.data);
  }
  return code;
}

// All arguments with the outputs' shape take the first layout that one of them has, if inputs can
// be broadcast over that and padding stays zero; otherwise plain.
void layouts(LayoutQuery& query) {
  const ElementFormula formula = formula_of(query.attributes());
  const Shape& shape = query.output_var(0).shape;
  const auto has_shape = [&](int i) { return query.input_var(i).shape == shape; };
  std::optional<Layout> common;
  for (int i = 0; i < query.input_count() && !common; ++i) {
    if (has_shape(i)) common = query.input(i);
  }
  if (!common || common->is_opaque()) return;
  if (common->elements() != shape.elements() && !formula.maps_zeros_to_zeros()) return;
  for (int i = 0; i < query.input_count(); ++i) {
    if (has_shape(i)) continue;
    if (!cuda::broadcast_over(shape, *common, query.input_var(i).shape, formula.axes[i])) return;
  }
  for (int i = 0; i < query.input_count(); ++i) {
    if (has_shape(i)) query.need(i, *common);
  }
  for (int o = 0; o < query.output_count(); ++o) query.give(o, *common);
}

}  // namespace

FLEET_KERNEL(cuda, fused_elementwise) {
  def.dtypes = cuda::floating_types();
  def.layouts = layouts;
  def.create = [](KernelContext& context) {
    const ElementProgram program = assign_registers(formula_of(context.attributes()));
    const Code code = code_of(context, program);
    const size_t shared = program.registers * kThreads * sizeof(Values);
    const unsigned blocks = cuda::blocks_for(code.count, kThreads * kElements);
    return make_kernel([=](Stream& stream) {
      cuda::launch(interpret, blocks, kThreads, shared, cuda::stream_of(stream), code);
    });
  };
}

}  // namespace fleet
