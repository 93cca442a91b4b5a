// Pooling with our own kernels: cuDNN's gradient of a maximum would need the image again.
#include "backend/cuda/device.h"
#include "backend/cuda/layouts.h"
#include "backend/cuda/pooling.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

using cuda::Pooling;

Pooling pooling_of(const Attributes& attributes, const Shape& x, const Shape& y, DType dtype) {
  Pooling pooling{.dtype = dtype,
                  .batch = x[0],
                  .channels = x[1],
                  .in = {x[2], x[3]},
                  .out = {y[2], y[3]},
                  .is_max = attributes.text("type") == "max",
                  .exclusive = attributes.boolean("exclusive")};
  if (attributes.boolean("global")) {
    pooling.window = {{x[2], x[3]}, {x[2], x[3]}, {0, 0}, {1, 1}};
  } else {
    const std::vector<int64_t>& kernel = attributes.integers("kernel");
    pooling.window = window_of(attributes, kernel[0], kernel[1]);
  }
  return pooling;
}

bool is_global_mean(const Attributes& attributes) {
  return attributes.boolean("global") && attributes.text("type") == "avg";
}

cuda::GlobalPooling global_of(const Pooling& pooling) {
  return {.dtype = pooling.dtype,
          .batch = pooling.batch,
          .pixels = pooling.in[0] * pooling.in[1],
          .channels = pooling.channels};
}

}  // namespace

FLEET_KERNEL(cuda, pool2d) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var &x = query.input_var(0), &y = query.output_var(0);
    query.need(0, cuda::channels_last(x.shape));
    query.give(0, cuda::channels_last(y.shape));
    const Pooling pooling = pooling_of(query.attributes(), x.shape, y.shape, x.dtype);
    query.give(1, Layout::opaque(pooling_mask_bytes(pooling), "pool2d_mask"));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &y = context.outputs[0], &mask = context.outputs[1];
    const Pooling pooling = pooling_of(context.attributes(), x.shape, y.shape, x.dtype);
    if (is_global_mean(context.attributes())) {
      return make_kernel([pooling = global_of(pooling), x, y](Stream& stream) {
        global_average(pooling, x.data, y.data, cuda::stream_of(stream));
      });
    }
    return make_kernel([pooling, x, y, mask](Stream& stream) {
      pooling_forward(pooling, x.data, y.data, mask.data, cuda::stream_of(stream));
    });
  };
}

FLEET_KERNEL(cuda, pool2d_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Shape &dy = query.input_var(1).shape, &dx = query.output_var(0).shape;
    if (query.input(0)) query.need(0, *query.input(0));  // y is not read
    query.need(1, cuda::channels_last(dy));
    if (query.has_input(2)) query.need(2, *query.input(2));
    query.give(0, cuda::channels_last(dx));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &dy = context.inputs[1], &mask = context.inputs[2], &dx = context.outputs[0];
    const Pooling pooling = pooling_of(context.attributes(), dx.shape, dy.shape, dy.dtype);
    if (is_global_mean(context.attributes())) {
      return make_kernel([pooling = global_of(pooling), dy, dx](Stream& stream) {
        global_average_grad(pooling, dy.data, dx.data, cuda::stream_of(stream));
      });
    }
    return make_kernel([pooling, dy, mask, dx](Stream& stream) {
      pooling_backward(pooling, dy.data, mask.data, dx.data, cuda::stream_of(stream));
    });
  };
}

}  // namespace fleet
