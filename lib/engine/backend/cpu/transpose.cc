#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "backend/cpu/channel_runs.h"
#include "backend/cpu/elementwise.h"
#include "backend/cpu/image_layout.h"

namespace fleet {
namespace {

const std::vector<int64_t> kChannelsLast = {0, 2, 3, 1}, kChannelsSecond = {0, 3, 1, 2};

// An image keeps the layout of convolutions if the other side of the transpose has channels last:
// the channels of a pixel, or of a pixel's block, are contiguous on both sides. So nothing is
// reordered for the convolutions around the transpose.
void transpose_layouts(LayoutQuery& query) {
  const std::vector<int64_t>& perm = query.attributes().integers("perm");
  if (perm == kChannelsLast) {
    const Shape& x = query.input_var(0).shape;
    const std::optional<Layout>& now = query.input(0);
    for (const int64_t block : {8, 16}) {
      if (now == cpu::blocked_image(x, block)) query.need(0, *now);
    }
    if (now == Layout::channels_last(x)) query.need(0, *now);
  } else if (perm == kChannelsSecond && !query.bound_output(0)) {
    const Shape& y = query.output_var(0).shape;
    if (cpu::prefers_channels_last(query.output_var(0).dtype)) {
      return query.give(0, Layout::channels_last(y));
    }
    const int64_t block = cpu::native_channel_block();
    if (y[1] >= block) query.give(0, cpu::blocked_image(y, block));
  }
}

// Copies pixels [begin, end) of one image: `last` has channels last.
template <bool kToBlocks, int64_t kBlock, typename T>
void copy_pixels(T* blocked, T* last, int64_t channels, int64_t pixels, int64_t begin,
                 int64_t end) {
  for (int64_t c = 0; c < channels; c += kBlock) {
    T* block = blocked + c * pixels;
    const int64_t some = std::min(kBlock, channels - c);
    for (int64_t p = begin; p < end; ++p) {
      T *here = block + p * kBlock, *there = last + p * channels + c;
      const T* from = kToBlocks ? there : here;
      T* to = kToBlocks ? here : there;
      if (some == kBlock) {
        std::copy_n(from, kBlock, to);
        continue;
      }
      std::copy_n(from, some, to);
      if (kToBlocks) std::fill(to + some, to + kBlock, T());  // the padding
    }
  }
}

// Between [N, C, H, W] in blocks of channels and [N, H, W, C].
template <bool kToBlocks, int64_t kBlock, typename T>
std::unique_ptr<Kernel> make_block_copy(const Argument& blocked, const Argument& last) {
  constexpr int64_t kPixels = 32;  // at once, so that their channels stay cached
  const Shape& s = blocked.shape;
  const int64_t images = s[0], channels = s[1], pixels = s[2] * s[3];
  const int64_t parts = (pixels + kPixels - 1) / kPixels;
  const int64_t stride = blocked.layout.strides()[0];
  const bool parallel = s.elements() >= cpu::kParallelElements;
  return make_kernel([=, from = blocked.as<T>(), to = last.as<T>()](Stream&) {
#pragma omp parallel for if (parallel)
    for (int64_t part = 0; part < images * parts; ++part) {
      const int64_t image = part / parts, begin = part % parts * kPixels;
      copy_pixels<kToBlocks, kBlock>(from + image * stride, to + image * channels * pixels,
                                     channels, pixels, begin, std::min(begin + kPixels, pixels));
    }
  });
}

template <bool kToBlocks, typename T>
std::unique_ptr<Kernel> make_block_copy(const Argument& blocked, const Argument& last) {
  return blocked.layout.inner()[0].size == 8 ? make_block_copy<kToBlocks, 8, T>(blocked, last)
                                             : make_block_copy<kToBlocks, 16, T>(blocked, last);
}

// Whether one side has the memory order of the other.
bool is_same_order(const KernelContext& context) {
  const Argument &x = context.inputs[0], &y = context.outputs[0];
  const std::vector<int64_t>& perm = context.attributes().integers("perm");
  return (perm == kChannelsLast && x.layout == Layout::channels_last(x.shape)) ||
         (perm == kChannelsSecond && y.layout == Layout::channels_last(y.shape));
}

// Side length of the tiles that are transposed at once, so that they stay cached.
constexpr int64_t kTile = 32;

// A loop over one axis of y, with its strides in x and y.
struct Axis {
  int64_t count = 1, in = 0, out = 0;
};

// y's axes: the contiguous one in y, the contiguous one in x, and the others.
struct Loops {
  Axis contiguous_out, contiguous_in;
  std::array<Axis, Shape::kMaxRank> others;
  int others_count = 0;
  int64_t units = 1;  // product of the other axes' sizes

  Loops(const Shape& x, const std::vector<int64_t>& perm) {
    const std::vector<int64_t> in = Layout::plain(x).strides();
    int64_t out = 1;
    std::vector<Axis> axes(perm.size());
    for (size_t d = perm.size(); d-- > 0;) {
      axes[d] = {x[static_cast<int>(perm[d])], in[perm[d]], out};
      out *= axes[d].count;
    }
    if (axes.empty()) return;
    contiguous_out = axes.back();
    for (size_t d = 0; d + 1 < axes.size(); ++d) {
      if (perm[d] == x.rank() - 1) {
        contiguous_in = axes[d];
      } else {
        others[others_count++] = axes[d];
        units *= axes[d].count;
      }
    }
  }

  void offsets(int64_t unit, int64_t& in, int64_t& out) const {
    in = out = 0;
    for (int k = others_count; k-- > 0;) {
      const int64_t index = unit % others[k].count;
      unit /= others[k].count;
      in += index * others[k].in;
      out += index * others[k].out;
    }
  }
};

template <typename T>
void turn(const Loops& loops, const T* x, T* y, int64_t row_begin, int64_t row_end) {
  const Axis &rows = loops.contiguous_in, &columns = loops.contiguous_out;
  for (int64_t c0 = 0; c0 < columns.count; c0 += kTile) {
    const int64_t c1 = std::min(c0 + kTile, columns.count);
    for (int64_t r = row_begin; r < row_end; ++r) {
      for (int64_t c = c0; c < c1; ++c) y[r * rows.out + c] = x[r * rows.in + c * columns.in];
    }
  }
}

// T: any type of the elements' size.
template <typename T>
std::unique_ptr<Kernel> make_transpose(KernelContext& context) {
  const Argument &input = context.inputs[0], &output = context.outputs[0];
  if (!input.layout.inner().empty()) return make_block_copy<false, T>(input, output);
  if (!output.layout.inner().empty()) return make_block_copy<true, T>(output, input);
  if (is_same_order(context)) return cpu::copy_kernel(context);
  const Loops loops(context.inputs[0].shape, context.attributes().integers("perm"));
  const T* x = context.inputs[0].as<T>();
  T* y = context.outputs[0].as<T>();
  const int64_t tiles = (loops.contiguous_in.count + kTile - 1) / kTile;
  const bool parallel = context.inputs[0].shape.elements() >= cpu::kParallelElements;
  return make_kernel([=](Stream&) {
#pragma omp parallel for if (parallel)
    for (int64_t unit = 0; unit < loops.units * tiles; ++unit) {
      int64_t in = 0, out = 0;
      loops.offsets(unit / tiles, in, out);
      const int64_t row = unit % tiles * kTile;
      turn(loops, x + in, y + out, row, std::min(row + kTile, loops.contiguous_in.count));
    }
  });
}

}  // namespace

FLEET_KERNEL(cpu, transpose) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
  def.layouts = transpose_layouts;
  def.create = [](KernelContext& context) {
    return size_of(context.inputs[0].dtype) == 2 ? make_transpose<uint16_t>(context)
                                                 : make_transpose<float>(context);
  };
}

}  // namespace fleet
