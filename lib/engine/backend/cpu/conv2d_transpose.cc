// Uses the data and weight gradients of a convolution whose image is this operation's output.
#include "backend/cpu/channels.h"
#include "backend/cpu/convolution.h"
#include "backend/cpu/image_layout.h"

namespace fleet {
namespace {

using cpu::Convolution;
using cpu::ConvolutionChoice;

void transpose_layouts(LayoutQuery& query) {
  const Convolution conv =
      cpu::convolution_of(Convolution::kData, query.attributes(), query.output_var(0),
                          query.input_var(1), query.input_var(0));
  const ConvolutionChoice choice =
      cpu::choose(conv, cpu::with_preferred(conv, query.input(1),
                                            {{std::nullopt, query.input(1), query.input(0)},
                                             {std::nullopt, std::nullopt, query.input(0)},
                                             {std::nullopt, query.input(1), std::nullopt},
                                             {}}));
  query.need(0, choice.y);
  query.need(1, choice.weight);
  query.give(0, choice.x);
  query.workspace(choice.workspace);
}

void weight_layouts(LayoutQuery& query) {
  if (!query.has_output(0)) {
    if (query.input(1) && !query.input(1)->is_opaque()) query.need(1, *query.input(1));
    if (query.input(0)) query.need(0, *query.input(0));
    return;
  }
  const Convolution conv =
      cpu::convolution_of(Convolution::kWeight, query.attributes(), query.input_var(1),
                          query.output_var(0), query.input_var(0));
  const ConvolutionChoice choice = cpu::choose(
      conv, cpu::with_preferred(conv, query.bound_output(0),
                                {{query.input(1), query.bound_output(0), query.input(0)},
                                 {query.input(1), std::nullopt, query.input(0)},
                                 {std::nullopt, query.bound_output(0), std::nullopt},
                                 {}}));
  query.need(0, choice.y);
  query.need(1, choice.x);
  query.give(0, choice.weight);
  query.workspace(choice.workspace);
}

}  // namespace

FLEET_KERNEL(cpu, conv2d_transpose) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = transpose_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
    const Argument& y = context.outputs[0];
    const Convolution conv =
        cpu::convolution_of(Convolution::kData, context.attributes(), y, weight, x);
    std::shared_ptr<Kernel> product =
        cpu::make_convolution(conv, y, weight, {}, x, context.workspace);
    if (!bias) return make_kernel([product](Stream& stream) { product->run(stream); });
    return make_kernel([product, image = cpu::Channels(y), bias](Stream& stream) {
      product->run(stream);
      image.add(bias);
    });
  };
}

FLEET_KERNEL(cpu, conv2d_transpose_weight_grad) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = weight_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument &dweight = context.outputs[0], &dbias = context.outputs[1];
    std::shared_ptr<Kernel> product;
    if (dweight) {
      const Convolution conv =
          cpu::convolution_of(Convolution::kWeight, context.attributes(), dy, dweight, x);
      product = cpu::make_convolution(conv, dy, dweight, {}, x, context.workspace);
    }
    if (!dbias) return make_kernel([product](Stream& stream) { product->run(stream); });
    return make_kernel([product, image = cpu::Channels(dy), dbias](Stream& stream) {
      if (product) product->run(stream);
      image.sum(dbias);
    });
  };
}

}  // namespace fleet
