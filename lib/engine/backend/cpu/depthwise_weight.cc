#include <algorithm>
#include <cstring>

#include "backend/cpu/channel_runs.h"
#include "backend/cpu/channels.h"
#include "backend/cpu/convolution.h"
#include "backend/cpu/elementwise.h"
#include "backend/cpu/image_layout.h"

namespace fleet::cpu {
namespace {

// A block of channels of a pixel, in registers and as bfloat16 in memory.
template <int kBlock>
struct BlockOf;
template <>
struct BlockOf<8> {
  using Lanes = float __attribute__((vector_size(32)));
  using Words = uint32_t __attribute__((vector_size(32)));
  using Halves = uint16_t __attribute__((vector_size(16)));
};
template <>
struct BlockOf<16> {
  using Lanes = float __attribute__((vector_size(64)));
  using Words = uint32_t __attribute__((vector_size(64)));
  using Halves = uint16_t __attribute__((vector_size(32)));
};
template <int kBlock>
using Lanes = typename BlockOf<kBlock>::Lanes;

template <int kBlock>
FLEET_INLINE void load(const float* from, Lanes<kBlock>& to) {
  std::memcpy(&to, from, sizeof to);
}

template <int kBlock>
FLEET_INLINE void load(const BFloat16* from, Lanes<kBlock>& to) {
  using Words = typename BlockOf<kBlock>::Words;
  typename BlockOf<kBlock>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  const Words words = __builtin_convertvector(halves, Words) << 16;
  std::memcpy(&to, &words, sizeof to);
}

// The block of oneDNN's convolutions, so that nothing is reordered between them and this; 16 if
// they use none.
int64_t block_size() { return native_channel_block() == 8 ? 8 : 16; }

// The places of a block of channels in an image: blocks have planes of their own, or with channels
// last a part of each pixel.
struct Planes {
  int64_t image, block, pixel;  // elements between them
};

struct Geometry {
  int64_t images, channels;
  int64_t height, width, out_height, out_width;
  Planes x, dy;
  int64_t kernel, stride[2], padding[2];

  // The output columns [begin, end) read only inside the image, for every tap.
  int64_t inner_begin() const { return (padding[1] + stride[1] - 1) / stride[1]; }
  int64_t inner_end() const {
    const int64_t last = width - kernel + padding[1];  // last column of the first tap
    return last < 0 ? 0 : std::min(out_width, last / stride[1] + 1);
  }
};

// The products of one row of dy with one row of x, for each of the K taps of a kernel row.
// kPacked: pixels of a block follow each other.
template <int kBlock, int K, bool kPacked, typename T>
FLEET_INLINE void add_row(const Geometry& g, const T* x, const T* dy, Lanes<kBlock>* sums) {
  Lanes<kBlock> row[K] = {};
  const int64_t pixel = kPacked ? kBlock : g.x.pixel;
  const int64_t begin = std::min(g.inner_begin(), g.out_width);
  const int64_t end = std::max(begin, g.inner_end());
  const auto at_edge = [&](int64_t column) __attribute__((always_inline)) {
    Lanes<kBlock> slope, value;
    load<kBlock>(dy + column * (kPacked ? kBlock : g.dy.pixel), slope);
    const int64_t first = column * g.stride[1] - g.padding[1];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
      if (first + k < 0 || first + k >= g.width) continue;
      load<kBlock>(x + (first + k) * pixel, value);
      row[k] += slope * value;
    }
  };
  for (int64_t column = 0; column < begin; ++column) at_edge(column);
  for (int64_t column = begin; column < end; ++column) {
    Lanes<kBlock> slope, value;
    load<kBlock>(dy + column * (kPacked ? kBlock : g.dy.pixel), slope);
    const T* read = x + (column * g.stride[1] - g.padding[1]) * pixel;
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
      load<kBlock>(read + k * pixel, value);
      row[k] += slope * value;
    }
  }
  for (int64_t column = end; column < g.out_width; ++column) at_edge(column);
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) sums[k] += row[k];
}

// Row `tap` of the kernel, for one block of channels: K times its size. x, dy: its first element.
template <int kBlock, int K, bool kPacked, typename T>
FLEET_SIMD void sum_taps(const Geometry& g, const T* x, const T* dy, int64_t tap, float* taps) {
  Lanes<kBlock> sums[K] = {};
  for (int64_t image = 0; image < g.images; ++image) {
    for (int64_t row = 0; row < g.out_height; ++row) {
      const int64_t read = row * g.stride[0] - g.padding[0] + tap;
      if (read < 0 || read >= g.height) continue;
      add_row<kBlock, K, kPacked>(g, x + image * g.x.image + read * g.width * g.x.pixel,
                                  dy + image * g.dy.image + row * g.out_width * g.dy.pixel, sums);
    }
  }
  std::memcpy(taps, sums, sizeof sums);
}

// With channels last, the last block may have fewer channels: then it starts in the previous one,
// whose channels are computed twice, and `begin` is the first lane of its own.
struct Lane {
  int64_t channel, begin, count;
  Lane(int64_t block, int64_t size, int64_t channels, bool packed)
      : channel(block * size), begin(0), count(std::min(size, channels - channel)) {
    if (packed || count == size) return;
    begin = size - count;
    channel -= begin;
  }
};

template <int kBlock, int K, bool kPacked, typename T, typename W>
std::unique_ptr<Kernel> make_kernel_of(const Geometry& g, const Argument& x, const Argument& dy,
                                       const Argument& dweight, const Argument& dbias) {
  std::optional<Channels> image;
  if (dbias) image.emplace(dy);
  const int64_t blocks = (g.channels + kBlock - 1) / kBlock;
  return make_kernel([=, x = x.as<T>(), slope = dy.as<T>(), weights = dweight.as<W>()](Stream&) {
#pragma omp parallel for
    for (int64_t item = 0; item < blocks * K; ++item) {
      float taps[K * kBlock];
      const int64_t block = item / K;
      const Lane lanes(block, kBlock, g.channels, kPacked);
      const int64_t x_at = kPacked ? block * g.x.block : lanes.channel;
      const int64_t dy_at = kPacked ? block * g.dy.block : lanes.channel;
      sum_taps<kBlock, K, kPacked>(g, x + x_at, slope + dy_at, item % K, taps);
      W* to = weights + item * K * kBlock;
      for (int64_t k = 0; k < K; ++k, to += kBlock) {
        for (int64_t l = 0; l < kBlock; ++l) {
          to[l] = static_cast<W>(l < lanes.count ? taps[k * kBlock + lanes.begin + l] : 0.0f);
        }
      }
    }
    if (image) image->sum(dbias);
  });
}

template <int kBlock, bool kPacked, typename T, typename W>
std::unique_ptr<Kernel> make_of_size(const Geometry& g, const Argument& x, const Argument& dy,
                                     const Argument& dweight, const Argument& dbias) {
  if (g.kernel == 3) return make_kernel_of<kBlock, 3, kPacked, T, W>(g, x, dy, dweight, dbias);
  if (g.kernel == 5) return make_kernel_of<kBlock, 5, kPacked, T, W>(g, x, dy, dweight, dbias);
  return make_kernel_of<kBlock, 7, kPacked, T, W>(g, x, dy, dweight, dbias);
}

template <int kBlock, typename T, typename W>
std::unique_ptr<Kernel> make_of_block(const Geometry& g, const Argument& x, const Argument& dy,
                                      const Argument& dweight, const Argument& dbias) {
  return x.layout.inner().empty() ? make_of_size<kBlock, false, T, W>(g, x, dy, dweight, dbias)
                                  : make_of_size<kBlock, true, T, W>(g, x, dy, dweight, dbias);
}

Planes planes_of(const Layout& layout) {
  const std::vector<int64_t>& strides = layout.strides();
  return {strides[0], strides[1], strides[3]};
}

bool is_loop_type(DType dtype) {
  return std::find(kLoopTypes.begin(), kLoopTypes.end(), dtype) != kLoopTypes.end();
}

}  // namespace

bool DepthwiseWeight::is_for(const Convolution& conv) {
  const Window& window = conv.window;
  const int64_t kernel = window.kernel[0];
  const bool fits = conv.groups == conv.x[1] && conv.weight[0] == conv.x[1] &&
                    kernel == window.kernel[1] && (kernel == 3 || kernel == 5 || kernel == 7) &&
                    window.dilations[0] == 1 && window.dilations[1] == 1 &&
                    is_loop_type(conv.type) && is_loop_type(conv.weight_type) && conv.groups > 1;
  return fits && choose(conv, {{}}).slow;
}

Layout DepthwiseWeight::image_layout(const Shape& s, DType type) {
  // With fewer channels than a block there is none to start in.
  const bool last = prefers_channels_last(type) && s[1] >= block_size();
  return last ? Layout::channels_last(s) : blocked_image(s, block_size());
}

Layout DepthwiseWeight::weight_layout(const Shape& s) {
  const int64_t block = block_size(), taps = s[2] * s[3] * block;
  return Layout::blocked({(s[0] + block - 1) / block * block, s[1], s[2], s[3]},
                         {taps, taps, s[3] * block, block}, {{0, block}});
}

std::unique_ptr<Kernel> DepthwiseWeight::make(const Convolution& conv, const Argument& x,
                                              const Argument& dy, const Argument& dweight,
                                              const Argument& dbias) {
  const Window& window = conv.window;
  const int64_t block = block_size();
  const Geometry g{.images = conv.x[0],
                   .channels = conv.x[1],
                   .height = conv.x[2],
                   .width = conv.x[3],
                   .out_height = conv.y[2],
                   .out_width = conv.y[3],
                   .x = planes_of(x.layout),
                   .dy = planes_of(dy.layout),
                   .kernel = window.kernel[0],
                   .stride = {window.strides[0], window.strides[1]},
                   .padding = {window.paddings[0], window.paddings[1]}};
  std::unique_ptr<Kernel> kernel;
  with_loop_type(conv.type, [&]<typename T>(T) {
    with_loop_type(dweight.dtype, [&]<typename W>(W) {
      kernel = block == 8 ? make_of_block<8, T, W>(g, x, dy, dweight, dbias)
                          : make_of_block<16, T, W>(g, x, dy, dweight, dbias);
    });
  });
  return kernel;
}

}  // namespace fleet::cpu
