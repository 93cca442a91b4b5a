#include <algorithm>

#include "backend/cuda/copies.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

struct alignas(16) Wide {
  uint64_t halves[2];
};

// Calls body with an unsigned type of this many bytes.
template <typename Body>
void with_size(size_t bytes, Body body) {
  switch (bytes) {
    case 1:
      return body(uint8_t());
    case 2:
      return body(uint16_t());
    case 4:
      return body(uint32_t());
    case 8:
      return body(uint64_t());
    default:
      return body(Wide());
  }
}

// Outermost first, as in Copy.
struct Axes {
  CopyAxis at[Copy::kMaxAxes];
  int count = 0;
};

Axes to_axes(const std::vector<CopyAxis>& axes) {
  Axes result;
  for (const CopyAxis& axis : axes) result.at[result.count++] = axis;
  return result;
}

// The positions of element `unit` of the axes on both sides. Index: 32 bits if they suffice, since
// 64-bit divisions are slow.
template <typename Index>
__device__ inline void locate(const Axes& axes, Index unit, int64_t& from, int64_t& to) {
  for (int d = axes.count - 1; d >= 0; --d) {
    const Index size = static_cast<Index>(axes.at[d].size);
    const Index rest = unit / size;
    const int64_t index = static_cast<int64_t>(unit - rest * size);
    unit = rest;
    from += index * axes.at[d].from;
    to += index * axes.at[d].to;
  }
}

template <typename T, typename Index>
__global__ void copy_elements(Axes axes, int64_t count, const T* from, T* to) {
  const int64_t unit = thread_index();
  if (unit >= count) return;
  int64_t source = 0, target = 0;
  locate(axes, static_cast<Index>(unit), source, target);
  to[target] = from[source];
}

constexpr int kTile = 32, kTileRows = 8;

// For tiles of `rows` (contiguous in `from`) by `columns` (contiguous in `to`): both sides are
// accessed contiguously. blockIdx.z counts the other axes.
template <typename T>
__global__ void turn(Axes others, CopyAxis rows, CopyAxis columns, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];
  int64_t source = 0, target = 0;
  locate(others, static_cast<uint32_t>(blockIdx.z), source, target);
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const int64_t row = row0 + threadIdx.x, column = column0 + i;
    if (row < rows.size && column < columns.size) {
      tile[i][threadIdx.x] = from[source + row * rows.from + column * columns.from];
    }
  }
  block_barrier();
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const int64_t row = row0 + i, column = column0 + threadIdx.x;
    if (row < rows.size && column < columns.size) {
      to[target + row * rows.to + column * columns.to] = tile[threadIdx.x][i];
    }
  }
}

// The layout of a tensor, for kernels: axes with at most one block each.
struct AxisStrides {
  int64_t stride[Shape::kMaxRank], block[Shape::kMaxRank], inner[Shape::kMaxRank];
  __device__ int64_t of(int axis, int64_t index) const {
    return index / block[axis] * stride[axis] + index % block[axis] * inner[axis];
  }
};

AxisStrides axis_strides(const Layout& layout) {
  AxisStrides strides;
  for (int d = 0; d < layout.padded().rank(); ++d) {
    strides.stride[d] = layout.strides()[d];
    strides.block[d] = 1;
    strides.inner[d] = 0;
  }
  int64_t inner = 1;
  for (size_t k = layout.inner().size(); k-- > 0;) {
    const Layout::Block& block = layout.inner()[k];
    if (strides.block[block.axis] != 1) {
      throw Error(ErrorCode::kUnsupported, "no cuda kernel for the layout " + layout.text());
    }
    strides.block[block.axis] = block.size;
    strides.inner[block.axis] = inner;
    inner *= block.size;
  }
  return strides;
}

// A level of a layout, outermost first: `size` steps of `multiple` along `axis`.
struct Digit {
  int axis;
  int64_t size, multiple, stride;
};

struct Digits {
  Digit at[2 * Shape::kMaxRank];
  int count = 0;
  int64_t extent[Shape::kMaxRank];  // extents of the axes, without padding
  int rank = 0;
};

Digits digits_of(const Shape& shape, const Layout& layout) {
  const AxisStrides strides = axis_strides(layout);
  Digits digits;
  digits.rank = shape.rank();
  for (int d = 0; d < shape.rank(); ++d) {
    digits.extent[d] = shape[d];
    const int64_t outer = layout.padded()[d] / strides.block[d];
    if (outer > 1) digits.at[digits.count++] = {d, outer, strides.block[d], strides.stride[d]};
    if (strides.block[d] > 1)
      digits.at[digits.count++] = {d, strides.block[d], 1, strides.inner[d]};
  }
  std::sort(digits.at, digits.at + digits.count,
            [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  return digits;
}

template <typename T, typename Index>
__global__ void relayout_elements(Digits digits, AxisStrides from, int64_t count, const T* x,
                                  T* y) {
  const int64_t unit = thread_index();
  if (unit >= count) return;
  int64_t index[Shape::kMaxRank] = {};
  int64_t target = 0;
  Index rest = static_cast<Index>(unit);
  for (int k = digits.count - 1; k >= 0; --k) {
    const Digit& digit = digits.at[k];
    const Index size = static_cast<Index>(digit.size);
    const int64_t step = static_cast<int64_t>(rest % size);
    rest /= size;
    index[digit.axis] += step * digit.multiple;
    target += step * digit.stride;
  }
  int64_t source = 0;
  bool inside = true;
  for (int d = 0; d < digits.rank; ++d) {
    inside = inside && index[d] < digits.extent[d];
    source += from.of(d, index[d]);
  }
  y[target] = inside ? x[source] : T{};
}

constexpr int64_t kIndex32 = int64_t{1} << 31;

}  // namespace

Copy::Copy(std::vector<CopyAxis> axes, size_t element, const void* from, void* to)
    : axes_(std::move(axes)), element_(element), from_(from), to_(to) {
  for (const CopyAxis& axis : axes_) count_ *= axis.size;
  if (count_ == 0) return;
  join_axes();
  widen();
  if (axes_.size() > kMaxAxes) {
    throw Error(ErrorCode::kUnsupported, "no cuda kernel for a copy of so many axes");
  }
}

void Copy::join_axes() {
  std::erase_if(axes_, [](const CopyAxis& axis) { return axis.size == 1; });
  std::sort(axes_.begin(), axes_.end(),
            [](const CopyAxis& a, const CopyAxis& b) { return a.to > b.to; });
  std::vector<CopyAxis> joined;
  for (const CopyAxis& axis : axes_) {
    if (!joined.empty() && joined.back().from == axis.size * axis.from &&
        joined.back().to == axis.size * axis.to) {
      joined.back() = {joined.back().size * axis.size, axis.from, axis.to};
    } else {
      joined.push_back(axis);
    }
  }
  axes_ = std::move(joined);
}

// Merges elements that are contiguous on both sides into units of up to 16 bytes.
void Copy::widen() {
  if (axes_.empty() || axes_.back().from != 1 || axes_.back().to != 1) return;
  const auto fits = [&](int64_t wide) {
    const auto bytes = static_cast<uintptr_t>(wide) * element_;
    bool fit = bytes <= 16 && axes_.back().size % wide == 0 &&
               reinterpret_cast<uintptr_t>(from_) % bytes == 0 &&
               reinterpret_cast<uintptr_t>(to_) % bytes == 0;
    for (size_t d = 0; d + 1 < axes_.size(); ++d) {
      fit = fit && axes_[d].from % wide == 0 && axes_[d].to % wide == 0;
    }
    return fit;
  };
  int64_t wide = 16 / static_cast<int64_t>(element_);
  while (!fits(wide)) wide /= 2;
  element_ *= static_cast<size_t>(wide);
  count_ /= wide;
  axes_.back().size /= wide;
  for (size_t d = 0; d + 1 < axes_.size(); ++d) {
    axes_[d].from /= wide;
    axes_[d].to /= wide;
  }
}

void Copy::run(cudaStream_t stream) const {
  if (count_ == 0) return;
  with_size(element_, [&](auto type) {
    using T = decltype(type);
    const T* from = static_cast<const T*>(from_);
    T* to = static_cast<T*>(to_);
    const auto source = std::find_if(axes_.begin(), axes_.end(),
                                     [](const CopyAxis& axis) { return axis.from == 1; });
    const int64_t last = static_cast<int64_t>(axes_.size()) - 1;
    if (last > 0 && axes_[last].to == 1 && source < axes_.end() - 1) {
      const CopyAxis rows = *source, columns = axes_[last];
      Axes others;
      int64_t units = 1;
      for (const CopyAxis& axis : axes_) {
        if (&axis == &*source || &axis == &axes_[last]) continue;
        others.at[others.count++] = axis;
        units *= axis.size;
      }
      const dim3 grid(blocks_for(columns.size, kTile), blocks_for(rows.size, kTile),
                      static_cast<unsigned>(units));
      if (units <= 65535 && grid.y <= 65535) {
        launch(turn<T>, grid, dim3(kTile, kTileRows), 0, stream, others, rows, columns, from, to);
        return;
      }
    }
    launch(count_ < kIndex32 ? copy_elements<T, uint32_t> : copy_elements<T, uint64_t>,
           blocks_for(count_), kBlock, 0, stream, to_axes(axes_), count_, from, to);
  });
}

std::vector<CopyAxis> axes_between(const Shape& shape, const Layout& from, const Layout& to) {
  const AxisStrides source = axis_strides(from), target = axis_strides(to);
  const auto step = [](const AxisStrides& strides, int d, int64_t multiple) {
    return multiple >= strides.block[d] ? strides.stride[d] * (multiple / strides.block[d])
                                        : strides.inner[d] * multiple;
  };
  std::vector<CopyAxis> axes;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t small = std::min(source.block[d], target.block[d]);
    const int64_t large = std::max(source.block[d], target.block[d]);
    if (large % small != 0 || shape[d] % large != 0) return {};
    int64_t multiple = 1;
    for (const int64_t next : {small, large, shape[d]}) {
      if (next == multiple) continue;
      axes.push_back({next / multiple, step(source, d, multiple), step(target, d, multiple)});
      multiple = next;
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});  // one element
  return axes;
}

void relayout(const Argument& x, const Argument& y, cudaStream_t stream) {
  const int64_t count = y.layout.elements();
  with_size(size_of(x.dtype), [&](auto type) {
    using T = decltype(type);
    launch(count < kIndex32 ? relayout_elements<T, uint32_t> : relayout_elements<T, uint64_t>,
           blocks_for(count), kBlock, 0, stream, digits_of(y.shape, y.layout),
           axis_strides(x.layout), count, x.as<const T>(), y.as<T>());
  });
}

std::unique_ptr<Kernel> copy_kernel(KernelContext& context) {
  const Argument x = context.inputs[0], y = context.outputs[0];
  if (x.data == y.data) return make_kernel([](Stream&) {});
  const Copy copy({{y.layout.elements(), 1, 1}}, size_of(y.dtype), x.data, y.data);
  return make_kernel([=](Stream& stream) { copy.run(stream_of(stream)); });
}

}  // namespace fleet::cuda
