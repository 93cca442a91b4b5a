#include "backend/cpu/winograd.h"

#include <algorithm>

#include "backend/cpu/channels.h"
#include "base/cpu.h"

namespace fleet::cpu {
namespace {

constexpr int64_t kTile = 4;  // output size of a tile, in each direction

bool has_its_shape(const Convolution& conv) {
  const Window& window = conv.window;
  for (int d = 0; d < 2; ++d) {
    if (conv.weight[2 + d] != 3 || window.strides[d] != 1 || window.dilations[d] != 1) return false;
  }
  return conv.groups == 1 && conv.type == DType::kFloat32 && conv.weight_type == DType::kFloat32;
}

// Our own loops, where oneDNN has none.
const WinogradRuns& own_runs() {
  static const WinogradRuns runs = [] {
    const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
    const bool dnnl_has = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
    const bool available = FLEET_X86_HAS("avx2") && FLEET_X86_HAS("fma");
    return available && !dnnl_has ? avx2::winograd_runs() : WinogradRuns();
  }();
  return runs;
}

Shape in_blocks(const Shape& shape, int64_t lanes) {
  Shape padded = shape;
  for (int axis = 0; axis < 2; ++axis) padded[axis] = (shape[axis] + lanes - 1) / lanes * lanes;
  return padded;
}

Layout image_layout(const Shape& shape, int64_t lanes) {
  Shape p = in_blocks(shape, lanes);
  p[0] = shape[0];
  const int64_t pixels = p[2] * p[3];
  return Layout::blocked(p, {p[1] * pixels, pixels * lanes, p[3] * lanes, lanes}, {{1, lanes}});
}

// oneDNN's direct convolution has the same in its forward pass.
Layout weight_layout(const Shape& shape, int64_t lanes) {
  const Shape p = in_blocks(shape, lanes);
  const int64_t tap = lanes * lanes, block = 9 * tap;
  return Layout::blocked(p, {p[1] / lanes * block, block, 3 * tap, tap}, {{1, lanes}, {0, lanes}});
}

WinogradImage image_of(const Shape& shape, int64_t lanes) {
  return {.channels = in_blocks(shape, lanes)[1], .height = shape[2], .width = shape[3]};
}

WinogradConvolution loops_of(const Convolution& conv, int64_t lanes) {
  const WinogradImage x = image_of(conv.x, lanes), y = image_of(conv.y, lanes);
  const int64_t *p = conv.window.paddings, images = conv.x[0];
  if (conv.direction == Convolution::kData) {
    return {.images = images, .from = y, .to = x, .padding = {2 - p[0], 2 - p[1]}, .turned = true};
  }
  return {.images = images, .from = x, .to = y, .padding = {p[0], p[1]}};
}

size_t workspace_of(const Convolution& conv) {
  const WinogradRuns& runs = own_runs();
  const WinogradConvolution loops = loops_of(conv, runs.lanes);
  if (conv.direction == Convolution::kWeight) return static_cast<size_t>(runs.weights_bytes(loops));
  const size_t bias = conv.bias ? sizeof(float) * static_cast<size_t>(loops.to.channels) : 0;
  return static_cast<size_t>(runs.images_bytes(loops)) + bias;
}

// With that of one thread, whose number may change.
size_t whole_memory(const Convolution& conv) {
  if (conv.direction == Convolution::kWeight) return workspace_of(conv);
  const WinogradRuns& runs = own_runs();
  return workspace_of(conv) + static_cast<size_t>(runs.thread_bytes(loops_of(conv, runs.lanes)));
}

}  // namespace

// Measured with `scripts/bench.sh winograd` (docs/performance/winograd.md). With few channels,
// transforms cost more than they save. With few tiles, so does transforming the weights. If most of
// a tile lies outside the image, so do the multiplications.
bool prefers_winograd(const Convolution& conv) {
  if (conv.winograd_memory == 0 || !has_its_shape(conv)) return false;
  // 32 tiles are slower in our own loops, which transform weights in memory.
  constexpr int64_t kFewestChannels = 32;
  const int64_t fewest_tiles = own_runs().lanes > 0 ? 48 : 32;
  if (std::min(conv.weight[0], conv.weight[1]) < kFewestChannels) return false;
  const Shape& out = conv.direction == Convolution::kData ? conv.x : conv.y;
  int64_t tiles = out[0];
  for (int d = 2; d < 4; ++d) tiles *= (out[d] + kTile - 1) / kTile;
  const int64_t outputs = out[0] * out[2] * out[3];
  return tiles >= fewest_tiles && 2 * outputs >= tiles * kTile * kTile;
}

bool OwnWinograd::is_for(const Convolution& conv) {
  if (own_runs().lanes == 0 || !prefers_winograd(conv)) return false;
  return conv.bias.value_or(DType::kFloat32) == DType::kFloat32 &&
         whole_memory(conv) <= conv.winograd_memory;
}

ConvolutionChoice OwnWinograd::choice(const Convolution& conv) {
  const int64_t lanes = own_runs().lanes;
  return {.x = image_layout(conv.x, lanes),
          .weight = weight_layout(conv.weight, lanes),
          .y = image_layout(conv.y, lanes),
          .workspace = workspace_of(conv)};
}

std::unique_ptr<Kernel> OwnWinograd::make(const Convolution& conv, const Argument& x,
                                          const Argument& weight, const Argument& bias,
                                          const Argument& y, void* workspace) {
  const WinogradRuns& runs = own_runs();
  const WinogradConvolution loops = loops_of(conv, runs.lanes);
  auto* memory = static_cast<float*>(workspace);
  float *xs = x.as<float>(), *weights = weight.as<float>(), *ys = y.as<float>();
  switch (conv.direction) {
    case Convolution::kForward:
      break;
    case Convolution::kData:
      return make_kernel(
          [=, run = runs.images](Stream&) { run(loops, ys, weights, nullptr, xs, memory); });
    case Convolution::kWeight: {
      std::optional<Channels> image;
      if (bias) image.emplace(y);
      return make_kernel([=, run = runs.weights](Stream&) {
        run(loops, xs, ys, weights, memory);
        if (image) image->sum(bias);
      });
    }
  }
  if (!bias) {
    return make_kernel(
        [=, run = runs.images](Stream&) { run(loops, xs, weights, nullptr, ys, memory); });
  }
  // With zeros for the channels that only fill the last block.
  return make_kernel([=, run = runs.images, from = bias.as<float>()](Stream&) {
    float* whole = memory + runs.images_bytes(loops) / static_cast<int64_t>(sizeof(float));
    std::fill(std::copy_n(from, conv.y[1], whole), whole + loops.to.channels, 0.0f);
    run(loops, xs, weights, whole, ys, memory);
  });
}

}  // namespace fleet::cpu
