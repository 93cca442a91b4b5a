#include "backend/cpu/dnnl_glue.h"
#include "backend/cpu/max_pool_forward.h"
#include "backend/cpu/max_pool_gradient.h"
#include "ops/window.h"

namespace fleet {
namespace {

using cpu::PrimitiveKernel;
using dnnl::algorithm;
using dnnl::memory;
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;

struct Pool {
  Shape x, y;
  DType dtype;
  algorithm kind;
  memory::dims kernel, strides, before, after;
};

Pool pool_of(const Attributes& attributes, const Shape& x, const Shape& y, DType dtype) {
  Pool pool{.x = x, .y = y, .dtype = dtype, .kind = algorithm::pooling_max};
  if (attributes.text("type") == "avg") {
    pool.kind = attributes.boolean("exclusive") ? algorithm::pooling_avg_exclude_padding
                                                : algorithm::pooling_avg_include_padding;
  }
  if (attributes.boolean("global")) {
    pool.kernel = pool.strides = {x[2], x[3]};
    pool.before = pool.after = {0, 0};
    return pool;
  }
  const std::vector<int64_t>& kernel = attributes.integers("kernel");
  const Window window = window_of(attributes, kernel[0], kernel[1]);
  for (int d = 0; d < 2; ++d) {
    pool.kernel.push_back(kernel[d]);
    pool.strides.push_back(window.strides[d]);
    pool.before.push_back(window.paddings[d]);
    // The padding that the last window covers after the image: less than the given padding if
    // columns are left over, more if the number of windows was rounded up.
    const int64_t covered = (y[2 + d] - 1) * window.strides[d] + kernel[d];
    pool.after.push_back(std::max<int64_t>(covered - x[2 + d] - window.paddings[d], 0));
  }
  return pool;
}

Forward::primitive_desc forward(const Pool& pool, const Layout& x) {
  const Forward::desc desc(dnnl::prop_kind::forward_training, pool.kind,
                           cpu::desc_of(pool.x, pool.dtype, x),
                           cpu::desc_of(pool.y, pool.dtype, cpu::layout_like(x, pool.y)),
                           pool.strides, pool.kernel, pool.before, pool.after);
  return {desc, cpu::user_scratchpad(), cpu::engine()};
}

Backward::primitive_desc backward(const Pool& pool, const Layout& x) {
  const Backward::desc desc(pool.kind, cpu::desc_of(pool.x, pool.dtype, x),
                            cpu::desc_of(pool.y, pool.dtype, cpu::layout_like(x, pool.y)),
                            pool.strides, pool.kernel, pool.before, pool.after);
  return {desc, cpu::user_scratchpad(), cpu::engine(), forward(pool, x)};
}

// The layout of x, unless only the reference loops support it.
Layout fast_layout(const Pool& pool, const std::optional<Layout>& now) {
  const Layout plain = Layout::plain(pool.x);
  if (!now || now->is_opaque()) return plain;
  return cpu::is_reference(forward(pool, *now)) || cpu::is_reference(backward(pool, *now)) ? plain
                                                                                           : *now;
}

// oneDNN's code for AVX-512 is faster than our loops, and its other code slower.
template <typename Descriptor>
bool is_own(const Attributes& attributes, const Descriptor& desc, const Argument& x) {
  return !attributes.boolean("global") &&
         cpu::implementation_of(desc).find("avx512") == std::string::npos &&
         cpu::MaxPoolGradient::is_for(x, desc.workspace_desc());
}

void forward_layouts(LayoutQuery& query) {
  const Var& x = query.input_var(0);
  const Pool pool = pool_of(query.attributes(), x.shape, query.output_var(0).shape, x.dtype);
  cpu::translated("pool2d of " + x.shape.text(), [&] {
    const Layout layout = fast_layout(pool, query.input(0));
    const Forward::primitive_desc desc = forward(pool, layout);
    query.need(0, layout);
    query.give(0, cpu::layout_like(layout, pool.y));
    // A maximum always records its position; without a mask output, in the workspace.
    const auto mask = static_cast<int64_t>(desc.workspace_desc().get_size());
    query.give(1, Layout::opaque(std::max<int64_t>(mask, 1), "pool2d_mask"));
    query.workspace(cpu::SpareOutputs::bytes(desc, {query.has_output(1) ? 0 : mask}, 1));
  });
}

// All arguments follow y's layout, which was x's: the mask was written in it, and the gradient of x
// should have it.
void backward_layouts(LayoutQuery& query) {
  const Var& dy = query.input_var(1);
  const Pool pool = pool_of(query.attributes(), query.output_var(0).shape, dy.shape, dy.dtype);
  cpu::translated("pool2d_grad of " + pool.x.text(), [&] {
    const Layout layout =
        query.input(0) ? cpu::layout_like(*query.input(0), pool.x) : Layout::plain(pool.x);
    const Layout of_y = cpu::layout_like(layout, pool.y);
    query.need(0, of_y);
    query.need(1, of_y);
    if (query.has_input(2)) query.need(2, *query.input(2));
    query.give(0, layout);
    query.workspace(cpu::scratchpad_bytes(backward(pool, layout)));
  });
}

}  // namespace

FLEET_KERNEL(cpu, pool2d) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = forward_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &y = context.outputs[0], &mask = context.outputs[1];
    const Pool pool = pool_of(context.attributes(), x.shape, y.shape, x.dtype);
    return cpu::translated("pool2d of " + x.shape.text(), [&]() -> std::unique_ptr<Kernel> {
      const Forward::primitive_desc desc = forward(pool, x.layout);
      const size_t bytes = desc.workspace_desc().get_size();
      cpu::SpareOutputs spare(desc, context.workspace);
      if (is_own(context.attributes(), desc, x)) {
        const Window window = window_of(context.attributes(), pool.kernel[0], pool.kernel[1]);
        auto* places = mask ? mask.as<uint8_t>() : spare.take<uint8_t>(bytes);
        return cpu::MaxPoolForward::make(window, x, y, places);
      }
      auto kernel = std::make_unique<PrimitiveKernel>(desc, context.workspace);
      kernel->bind(DNNL_ARG_SRC, x.data);
      kernel->bind(DNNL_ARG_DST, y.data);
      if (bytes > 0) {
        kernel->bind(DNNL_ARG_WORKSPACE, mask ? mask.data : spare.take<char>(bytes));
      }
      return kernel;
    });
  };
}

FLEET_KERNEL(cpu, pool2d_grad) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = backward_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &dy = context.inputs[1], &mask = context.inputs[2], &dx = context.outputs[0];
    const Pool pool = pool_of(context.attributes(), dx.shape, dy.shape, dy.dtype);
    return cpu::translated("pool2d_grad of " + dx.shape.text(), [&]() -> std::unique_ptr<Kernel> {
      const Backward::primitive_desc desc = backward(pool, dx.layout);
      if (is_own(context.attributes(), desc, dx)) {
        const Window window = window_of(context.attributes(), pool.kernel[0], pool.kernel[1]);
        return cpu::MaxPoolGradient::make(window, dy, mask, dx);
      }
      auto kernel = std::make_unique<PrimitiveKernel>(desc, context.workspace);
      kernel->bind(DNNL_ARG_DIFF_DST, dy.data);
      kernel->bind(DNNL_ARG_DIFF_SRC, dx.data);
      if (desc.workspace_desc().get_size() > 0) kernel->bind(DNNL_ARG_WORKSPACE, mask.data);
      return kernel;
    });
  };
}

}  // namespace fleet
