#include <array>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

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
  def.create = [](KernelContext& context) {
    return size_of(context.inputs[0].dtype) == 2 ? make_transpose<uint16_t>(context)
                                                 : make_transpose<float>(context);
  };
}

}  // namespace fleet
