#include "backend/cpu/dnnl_glue.h"
#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

using cpu::PrimitiveKernel;
using dnnl::memory;
using Forward = dnnl::inner_product_forward;
using DataGradient = dnnl::inner_product_backward_data;
using WeightGradient = dnnl::inner_product_backward_weights;

// x and y are plain matrices whatever their shapes; the weight has oneDNN's preferred layout.
struct Product {
  int64_t rows, in, out;
  DType type, weight_type;  // type: of x and y
  std::optional<DType> bias = {};

  memory::desc matrix(int64_t height, int64_t width) const {
    const Shape shape{height, width};
    return cpu::desc_of(shape, type, Layout::plain(shape));
  }
  memory::desc x() const { return matrix(rows, in); }
  memory::desc y() const { return matrix(rows, out); }
  memory::desc weight(const std::optional<Layout>& layout) const {
    return cpu::desc_of({out, in}, weight_type, layout);
  }
  memory::desc bias_desc() const {
    const Shape shape{out};
    return bias ? cpu::desc_of(shape, *bias, Layout::plain(shape)) : memory::desc();
  }
};

Product product_of(const Shape& x, const Shape& y, DType type, DType weight_type) {
  const int64_t out = y[y.rank() - 1], rows = y.elements() / std::max<int64_t>(out, 1);
  return {rows, x.elements() / std::max<int64_t>(rows, 1), out, type, weight_type};
}

Forward::primitive_desc forward(const Product& p, const std::optional<Layout>& weight) {
  const Forward::desc desc(dnnl::prop_kind::forward_training, p.x(), p.weight(weight),
                           p.bias_desc(), p.y());
  return {desc, cpu::user_scratchpad(), cpu::engine(), /*allow_empty=*/true};
}

DataGradient::primitive_desc data_gradient(const Product& p, const std::optional<Layout>& weight) {
  const DataGradient::desc desc(p.x(), p.weight(weight), p.y());
  return {desc, cpu::user_scratchpad(), cpu::engine(), forward(p, std::nullopt),
          /*allow_empty=*/true};
}

WeightGradient::primitive_desc weight_gradient(const Product& p,
                                               const std::optional<Layout>& weight) {
  const WeightGradient::desc desc(p.x(), p.weight(weight), p.bias_desc(), p.y());
  return {desc, cpu::user_scratchpad(), cpu::engine(), forward(p, std::nullopt),
          /*allow_empty=*/true};
}

struct WeightChoice {
  Layout weight;
  size_t workspace;
};

// From this many rows on, a step in float32 with plain weights is faster: the weight gradient of
// oneDNN's blocked weights has half to nine tenths of the rate. Blocked, fewer rows run forward
// faster. In bfloat16 there is no difference (docs/performance/text.md).
constexpr int64_t kPlainRows = 256;

// The layout of a weight that has none yet; nullopt: what oneDNN prefers.
std::optional<Layout> first_layout(const Product& p) {
  if (p.rows < kPlainRows || p.type != DType::kFloat32) return std::nullopt;
  return Layout::plain({p.out, p.in});
}

// The weight keeps its layout if there is a fast implementation for it: a reorder costs more than a
// better one would gain.
template <typename Describe>
WeightChoice choose(const Product& p, const std::optional<Layout>& now, int argument,
                    Describe describe) {
  const std::string what = "fc of [" + std::to_string(p.rows) + ", " + std::to_string(p.in) +
                           "] to " + std::to_string(p.out) + " outputs";
  return cpu::translated(what, [&] {
    const std::optional<Layout> first = now ? now : first_layout(p);
    for (const std::optional<Layout>& candidate : {first, std::optional<Layout>()}) {
      const auto desc = describe(p, candidate);
      if (!desc || (candidate && cpu::is_reference(desc))) continue;
      const Layout weight = cpu::layout_of(cpu::argument_desc(desc, argument));
      const auto exact = describe(p, weight);
      if (exact) return WeightChoice{weight, cpu::scratchpad_bytes(exact)};
    }
    throw Error(ErrorCode::kUnsupported, "oneDNN has no implementation", what);
  });
}

constexpr int64_t kSingleColumns = 64;  // columns that a thread sums at a time

// The weight gradient of a layer with one output, such as that of a logit: oneDNN takes
// milliseconds for the sum of 512 rows with a bias. Sums go from the first row to the last.
struct SingleOutputGradient {
  int64_t rows, in;
  const float *x, *dy;
  float *dweight, *dbias;  // dbias may be null

  FLEET_SIMD void sum_columns(int64_t first, int64_t columns) const {
    float sum[kSingleColumns] = {};
    for (int64_t n = 0; n < rows; ++n) {
      const float* row = x + n * in + first;
      const float slope = dy[n];
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) sum[c] += slope * row[c];
    }
    std::memcpy(dweight + first, sum, columns * sizeof(float));
  }

  void run() const {
    const bool parallel = rows * in >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t first = 0; first < in; first += kSingleColumns) {
      sum_columns(first, std::min(kSingleColumns, in - first));
    }
    if (!dbias) return;
    *dbias = 0;
    for (int64_t n = 0; n < rows; ++n) *dbias += dy[n];
  }
};

bool has_single_output(const Product& p, const Argument& dweight, const Argument& dbias) {
  const bool floats = p.type == DType::kFloat32 && p.weight_type == DType::kFloat32 &&
                      (!dbias || dbias.dtype == DType::kFloat32);
  return p.out == 1 && floats && dweight && dweight.layout == Layout::plain({1, p.in});
}

}  // namespace

FLEET_KERNEL(cpu, fc) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = [](LayoutQuery& query) {
    const Var& x = query.input_var(0);
    Product p = product_of(x.shape, query.output_var(0).shape, x.dtype, query.input_var(1).dtype);
    if (query.has_input(2)) p.bias = query.input_var(2).dtype;
    const WeightChoice choice = choose(p, query.input(1), DNNL_ARG_WEIGHTS, forward);
    query.need(1, choice.weight);
    query.workspace(choice.workspace);
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
    const Argument& y = context.outputs[0];
    return cpu::translated("fc of " + x.shape.text(), [&] {
      Product p = product_of(x.shape, y.shape, x.dtype, weight.dtype);
      if (bias) p.bias = bias.dtype;
      auto kernel = std::make_unique<PrimitiveKernel>(forward(p, weight.layout), context.workspace);
      kernel->bind(DNNL_ARG_SRC, x.data);
      kernel->bind(DNNL_ARG_WEIGHTS, weight.data);
      if (bias) kernel->bind(DNNL_ARG_BIAS, bias.data);
      kernel->bind(DNNL_ARG_DST, y.data);
      return kernel;
    });
  };
}

FLEET_KERNEL(cpu, fc_data_grad) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = [](LayoutQuery& query) {
    const Var& dy = query.input_var(1);
    const Product p =
        product_of(query.output_var(0).shape, dy.shape, dy.dtype, query.input_var(0).dtype);
    const WeightChoice choice = choose(p, query.input(0), DNNL_ARG_WEIGHTS, data_gradient);
    query.need(0, choice.weight);
    query.workspace(choice.workspace);
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &weight = context.inputs[0], &dy = context.inputs[1], &dx = context.outputs[0];
    return cpu::translated("fc_data_grad of " + dy.shape.text(), [&] {
      const Product p = product_of(dx.shape, dy.shape, dy.dtype, weight.dtype);
      auto kernel =
          std::make_unique<PrimitiveKernel>(data_gradient(p, weight.layout), context.workspace);
      kernel->bind(DNNL_ARG_WEIGHTS, weight.data);
      kernel->bind(DNNL_ARG_DIFF_DST, dy.data);
      kernel->bind(DNNL_ARG_DIFF_SRC, dx.data);
      return kernel;
    });
  };
}

FLEET_KERNEL(cpu, fc_weight_grad) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = [](LayoutQuery& query) {
    const Var &x = query.input_var(0), &dy = query.input_var(1);
    Product p = product_of(x.shape, dy.shape, x.dtype,
                           query.has_output(0) ? query.output_var(0).dtype : x.dtype);
    if (query.has_output(1)) p.bias = query.output_var(1).dtype;
    const WeightChoice choice =
        choose(p, query.bound_output(0), DNNL_ARG_DIFF_WEIGHTS, weight_gradient);
    query.give(0, choice.weight);
    // A weight that is not trained is computed along with its bias and discarded.
    const int64_t unused = query.has_output(0) ? 0 : choice.weight.elements();
    query.workspace(cpu::SpareOutputs::bytes(weight_gradient(p, choice.weight), {unused},
                                             size_of(p.weight_type)));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument &dweight = context.outputs[0], &dbias = context.outputs[1];
    return cpu::translated("fc_weight_grad of " + x.shape.text(), [&]() -> std::unique_ptr<Kernel> {
      Product p = product_of(x.shape, dy.shape, x.dtype, dweight ? dweight.dtype : x.dtype);
      if (dbias) p.bias = dbias.dtype;
      if (has_single_output(p, dweight, dbias)) {
        const SingleOutputGradient gradient{
            p.rows, p.in, x.as<float>(), dy.as<float>(), dweight.as<float>(), dbias.as<float>()};
        return make_kernel([=](Stream&) { gradient.run(); });
      }
      const std::optional<Layout> layout =
          dweight ? std::optional<Layout>(dweight.layout)
                  : choose(p, std::nullopt, DNNL_ARG_DIFF_WEIGHTS, weight_gradient).weight;
      const WeightGradient::primitive_desc desc = weight_gradient(p, layout);
      auto kernel = std::make_unique<PrimitiveKernel>(desc, context.workspace);
      cpu::SpareOutputs spare(desc, context.workspace);
      kernel->bind(DNNL_ARG_SRC, x.data);
      kernel->bind(DNNL_ARG_DIFF_DST, dy.data);
      kernel->bind(
          DNNL_ARG_DIFF_WEIGHTS,
          dweight ? dweight.data : spare.take<char>(layout->elements() * size_of(p.weight_type)));
      if (dbias) kernel->bind(DNNL_ARG_DIFF_BIAS, dbias.data);
      return kernel;
    });
  };
}

}  // namespace fleet
