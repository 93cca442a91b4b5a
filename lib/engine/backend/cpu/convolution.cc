#include "backend/cpu/convolution.h"

#include <cstring>

#include "backend/cpu/image_layout.h"
#include "backend/cpu/winograd.h"

namespace fleet::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;

// Whether no block of output channels crosses the end of a group.
bool fits_groups(const Convolution& conv, const Layout& layout) {
  const int64_t each = conv.weight[0] / conv.groups;
  if (conv.groups == 1 || each == 1) return true;
  int64_t block = 1;
  for (const Layout::Block& b : layout.inner()) block *= b.axis == 0 ? b.size : 1;
  return each % block == 0 && layout.padded()[0] == conv.weight[0];
}

// oneDNN's weights have a leading axis of groups. An axis of length 1 has its neighbour's stride:
// some kernels compare that, too.
memory::desc weight_desc(const Convolution& conv, const std::optional<Layout>& layout) {
  const Shape& w = conv.weight;
  if (conv.groups == 1) return desc_of(w, conv.weight_type, layout);
  const int64_t each = w[0] / conv.groups;
  const Shape grouped{conv.groups, each, w[1], w[2], w[3]};
  if (!layout) return desc_of(grouped, conv.weight_type, std::nullopt);
  const bool blocks_groups = each == 1;  // depthwise: a block spans groups
  Shape padded = grouped;
  for (int d = 2; d < 5; ++d) padded[d] = layout->padded()[d - 1];
  if (blocks_groups) padded[0] = layout->padded()[0];
  int64_t block = 1;
  std::vector<Layout::Block> inner;
  for (const Layout::Block& b : layout->inner()) {
    inner.push_back({b.axis == 0 ? (blocks_groups ? 0 : 1) : b.axis + 1, b.size});
    if (b.axis == 0) block *= b.size;
  }
  const std::vector<int64_t>& s = layout->strides();
  const int64_t group_stride = blocks_groups ? s[0] : s[0] * (each / block);
  const int64_t stride = blocks_groups && w[1] == 1 ? s[1] : s[0];
  return desc_of(grouped, conv.weight_type,
                 Layout::blocked(padded, {group_stride, stride, s[1], s[2], s[3]}, inner));
}

// The inverse. Empty if groups and output channels do not form one axis (padding within each
// group).
std::optional<Layout> weight_layout(const Convolution& conv, const memory::desc& desc) {
  const Layout layout = layout_of(desc);
  if (conv.groups == 1) return layout;
  const Shape& padded = layout.padded();
  const int64_t each = conv.weight[0] / conv.groups;
  int64_t group_block = 1, each_block = 1;
  for (const Layout::Block& b : layout.inner()) {
    if (b.axis == 0) group_block *= b.size;
    if (b.axis == 1) each_block *= b.size;
  }
  const std::vector<int64_t>& s = layout.strides();
  const bool blocks_groups = each == 1 && padded[1] == 1;
  const bool one_axis = group_block == 1 && padded[1] == each && s[0] == s[1] * (each / each_block);
  if (!blocks_groups && !one_axis) return std::nullopt;
  std::vector<Layout::Block> inner;
  for (const Layout::Block& b : layout.inner()) inner.push_back({std::max(b.axis - 1, 0), b.size});
  return Layout::blocked({padded[0] * padded[1], padded[2], padded[3], padded[4]},
                         {blocks_groups ? s[0] : s[1], s[2], s[3], s[4]}, inner);
}

struct Arguments {
  int x, weight, bias, y;
};

Arguments arguments_of(Convolution::Direction direction) {
  switch (direction) {
    case Convolution::kForward:
      return {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    case Convolution::kData:
      return {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DIFF_DST};
    case Convolution::kWeight:
      break;
  }
  return {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST};
}

struct Geometry {
  memory::dims strides, dilations, before, after;
};

Geometry geometry_of(const Window& window) {
  Geometry g;
  for (int d = 0; d < 2; ++d) {
    g.strides.push_back(window.strides[d]);
    g.dilations.push_back(window.dilations[d] - 1);  // oneDNN counts from 0
    g.before.push_back(window.paddings[d]);
    g.after.push_back(window.ends[d]);
  }
  return g;
}

dnnl::convolution_forward::primitive_desc forward(const Convolution& conv, const memory::desc& x,
                                                  const memory::desc& weight,
                                                  const memory::desc& bias, const memory::desc& y,
                                                  algorithm method) {
  const Geometry g = geometry_of(conv.window);
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_training, method, x, weight,
                                             bias, y, g.strides, g.dilations, g.before, g.after);
  return {desc, user_scratchpad(), engine(), /*allow_empty=*/true};
}

// Empty if there is no implementation for these layouts.
dnnl::primitive_desc describe(const Convolution& conv, const ConvolutionLayouts& layouts,
                              algorithm method) {
  if (layouts.weight && !fits_groups(conv, *layouts.weight)) return {};
  const memory::desc x = desc_of(conv.x, conv.type, layouts.x);
  const memory::desc weight = weight_desc(conv, layouts.weight);
  const memory::desc y = desc_of(conv.y, conv.type, layouts.y);
  memory::desc bias;
  if (conv.bias) {
    const Shape channels{conv.y[1]};
    bias = desc_of(channels, *conv.bias, Layout::plain(channels));
  }
  if (conv.direction == Convolution::kForward) return forward(conv, x, weight, bias, y, method);
  const Geometry g = geometry_of(conv.window);
  // The gradient descriptors need a forward descriptor as a hint; only its kind matters. A
  // weight's gradient may have a wider type than the weight.
  Convolution described = conv;
  described.weight_type = conv.type;
  const auto hint = forward(
      described, desc_of(conv.x, conv.type, std::nullopt), weight_desc(described, std::nullopt),
      memory::desc(), desc_of(conv.y, conv.type, std::nullopt), algorithm::convolution_direct);
  if (conv.direction == Convolution::kData) {
    const dnnl::convolution_backward_data::desc desc(method, x, weight, y, g.strides, g.dilations,
                                                     g.before, g.after);
    return dnnl::convolution_backward_data::primitive_desc(desc, user_scratchpad(), engine(), hint,
                                                           /*allow_empty=*/true);
  }
  const dnnl::convolution_backward_weights::desc desc(method, x, weight, bias, y, g.strides,
                                                      g.dilations, g.before, g.after);
  return dnnl::convolution_backward_weights::primitive_desc(desc, user_scratchpad(), engine(), hint,
                                                            /*allow_empty=*/true);
}

dnnl::primitive_desc describe_winograd(const Convolution& conv, const ConvolutionLayouts& layouts) {
  if (!prefers_winograd(conv)) return {};
  const dnnl::primitive_desc pd = describe(conv, layouts, algorithm::convolution_winograd);
  return pd && scratchpad_bytes(pd) <= conv.winograd_memory ? pd : dnnl::primitive_desc();
}

dnnl::primitive_desc describe(const Convolution& conv, const ConvolutionLayouts& layouts) {
  const dnnl::primitive_desc pd = describe_winograd(conv, layouts);
  return pd ? pd : describe(conv, layouts, algorithm::convolution_direct);
}

bool is_slow(const dnnl::primitive_desc& desc) {
  return is_reference(desc) || implementation_of(desc).find("gemm") != std::string::npos;
}

std::optional<ConvolutionChoice> complete(const Convolution& conv, const dnnl::primitive_desc& pd) {
  const Arguments arguments = arguments_of(conv.direction);
  const std::optional<Layout> weight = weight_layout(conv, argument_desc(pd, arguments.weight));
  if (!weight) return std::nullopt;
  const Layout x = layout_of(argument_desc(pd, arguments.x));
  const Layout y = layout_of(argument_desc(pd, arguments.y));
  // The kernel is created with exactly these layouts, so their descriptor gives its memory.
  const dnnl::primitive_desc exact = describe(conv, {x, weight, y});
  if (!exact || (is_slow(exact) && !is_slow(pd))) return std::nullopt;
  return ConvolutionChoice{x, *weight, y, scratchpad_bytes(exact)};
}

// A fixed layout of weights may have kernels without AMX only. A reorder of the weights costs less.
std::optional<ConvolutionChoice> choose_amx(const Convolution& conv,
                                            const std::vector<ConvolutionLayouts>& candidates) {
  for (const ConvolutionLayouts& candidate : candidates) {
    const dnnl::primitive_desc pd = describe(conv, candidate, algorithm::convolution_direct);
    if (!pd || !uses_amx(implementation_of(pd))) continue;
    const auto choice = complete(conv, pd);
    if (!choice) continue;
    const ConvolutionLayouts chosen{choice->x, choice->weight, choice->y};
    const dnnl::primitive_desc exact = describe(conv, chosen, algorithm::convolution_direct);
    if (exact && uses_amx(implementation_of(exact))) return choice;
  }
  return std::nullopt;
}

// oneDNN 2.6 spreads the columns of a bfloat16 image over the strides in its scratch memory. Where
// the image is narrower than a stride, it reads columns there that it has not written.
bool reads_unwritten_scratch(const Convolution& conv) {
  return conv.direction == Convolution::kWeight && conv.type == DType::kBFloat16 &&
         conv.x[3] < conv.window.strides[1];
}

std::string text_of(const Convolution& conv) {
  return name_of(conv.type) + std::string(" convolution of ") + conv.x.text() + " with " +
         conv.weight.text() + " in " + std::to_string(conv.groups) + " groups";
}

}  // namespace

ConvolutionChoice choose(const Convolution& conv,
                         const std::vector<ConvolutionLayouts>& candidates) {
  if (OwnWinograd::is_for(conv)) return OwnWinograd::choice(conv);
  return translated(text_of(conv), [&] {
    // Winograd's gain is worth a reorder.
    for (const ConvolutionLayouts& candidate : candidates) {
      const dnnl::primitive_desc pd = describe_winograd(conv, candidate);
      if (!pd) continue;
      if (const auto choice = complete(conv, pd)) return *choice;
    }
    if (has_amx(conv.type) && prefers_channels_last(conv.type)) {
      if (const auto choice = choose_amx(conv, candidates)) return *choice;
    }
    for (const ConvolutionLayouts& candidate : candidates) {
      const dnnl::primitive_desc pd = describe(conv, candidate, algorithm::convolution_direct);
      if (!pd || is_slow(pd)) continue;
      if (const auto choice = complete(conv, pd)) return *choice;
    }
    const ConvolutionLayouts plain_weight{std::nullopt, Layout::plain(conv.weight), std::nullopt};
    for (const ConvolutionLayouts& last : {ConvolutionLayouts(), plain_weight}) {
      const dnnl::primitive_desc pd = describe(conv, last, algorithm::convolution_direct);
      if (!pd) continue;
      auto choice = complete(conv, pd);
      if (!choice) continue;
      choice->slow = is_slow(pd);
      return *choice;
    }
    throw Error(ErrorCode::kUnsupported, "oneDNN has no implementation", text_of(conv));
  });
}

size_t convolution_workspace(const Convolution& conv, const ConvolutionLayouts& layouts) {
  return translated(text_of(conv), [&] {
    const dnnl::primitive_desc pd = describe(conv, layouts);
    FLEET_CHECK(pd, "no implementation for the layouts chosen for a " + text_of(conv));
    return scratchpad_bytes(pd);
  });
}

std::unique_ptr<Kernel> make_convolution(const Convolution& conv, const Argument& x,
                                         const Argument& weight, const Argument& bias,
                                         const Argument& y, void* workspace) {
  if (OwnWinograd::is_for(conv)) return OwnWinograd::make(conv, x, weight, bias, y, workspace);
  return translated(text_of(conv), [&]() -> std::unique_ptr<Kernel> {
    const dnnl::primitive_desc pd = describe(conv, {x.layout, weight.layout, y.layout});
    FLEET_CHECK(pd, "no implementation for the layouts chosen for a " + text_of(conv));
    const Arguments arguments = arguments_of(conv.direction);
    auto kernel = std::make_unique<PrimitiveKernel>(pd, workspace);
    kernel->bind(arguments.x, x.data);
    kernel->bind(arguments.weight, weight.data);
    kernel->bind(arguments.y, y.data);
    if (conv.bias) kernel->bind(arguments.bias, bias.data);
    if (!reads_unwritten_scratch(conv)) return kernel;
    return make_kernel([=, bytes = scratchpad_bytes(pd),
                        kernel = std::shared_ptr<Kernel>(std::move(kernel))](Stream& stream) {
      std::memset(workspace, 0, bytes);
      kernel->run(stream);
    });
  });
}

}  // namespace fleet::cpu
