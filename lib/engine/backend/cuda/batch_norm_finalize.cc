// The parts of a batch normalization for operations that compute the others.
#include "backend/cuda/device.h"
#include "backend/cuda/layouts.h"
#include "backend/cuda/norm.h"
#include "exec/kernel.h"

namespace fleet {

FLEET_KERNEL(cuda, batch_norm_finalize) {
  def.create = [](KernelContext& context) {
    const std::vector<Argument>&in = context.inputs, &out = context.outputs;
    const cuda::NormFinish finish{.channels = in[0].shape[0],
                                  .count = context.attributes().integer("count"),
                                  .sum = in[0].as<float>(),
                                  .squares = in[1].as<float>(),
                                  .scale = in[2].as<float>(),
                                  .bias = in[3].as<float>(),
                                  .mean = in[4].as<float>(),
                                  .variance = in[5].as<float>(),
                                  .mean_out = out[0].as<float>(),
                                  .variance_out = out[1].as<float>(),
                                  .saved_mean = out[2].as<float>(),
                                  .saved_variance = out[3].as<float>(),
                                  .inverse = out[4].as<float>(),
                                  .factor = out[5].as<float>(),
                                  .constant = out[6].as<float>(),
                                  .shifted = context.attributes().boolean("shifted"),
                                  .epsilon = context.attributes().number("epsilon"),
                                  .momentum = context.attributes().number("momentum")};
    return make_kernel([finish](Stream& stream) { norm_finish(finish, cuda::stream_of(stream)); });
  };
}

FLEET_KERNEL(cuda, batch_norm_data_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Layout layout = cuda::rows_of_channels(query.input_var(0).shape);
    query.need(0, layout);
    query.need(6, layout);
    if (query.has_input(7)) query.need(7, *query.input(7));
    query.give(0, layout);
  };
  def.create = [](KernelContext& context) {
    const std::vector<Argument>& in = context.inputs;
    const cuda::NormBackward norm{.shape = cuda::norm_shape(in[0].shape, in[0].dtype),
                                  .x = in[0].data,
                                  .scale = in[1].as<float>(),
                                  .mean = in[2].as<float>(),
                                  .variance = in[3].as<float>(),
                                  .mask = in[7].as<uint8_t>(),
                                  .dx = context.outputs[0].data,
                                  .dz = in[6].data,
                                  .dscale = in[4].as<float>(),
                                  .dbias = in[5].as<float>(),
                                  .epsilon = context.attributes().number("epsilon"),
                                  .count = context.attributes().integer("count")};
    return make_kernel(
        [norm](Stream& stream) { norm_data_gradient(norm, cuda::stream_of(stream)); });
  };
}

}  // namespace fleet
