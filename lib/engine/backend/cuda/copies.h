// Copies between arrangements of the same elements: used by transpose, concat, slice and reorder.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "exec/kernel.h"

namespace fleet::cuda {

// One dimension of a copy: number of elements and strides, in elements.
struct CopyAxis {
  int64_t size, from, to;
};

// A copy of size(axes[0]) * size(axes[1]) * ... elements. Constructed once, run any number of
// times.
class Copy {
 public:
  static constexpr int kMaxAxes = 12;
  // axes: in any order. element: bytes per element: 1, 2, 4 or 8. At most kMaxAxes may remain after
  // merging axes that are contiguous on both sides, otherwise kUnsupported.
  Copy(std::vector<CopyAxis> axes, size_t element, const void* from, void* to);
  // Enqueued; may be recorded in a CUDA graph.
  void run(cudaStream_t stream) const;

 private:
  void join_axes();
  void widen();

  std::vector<CopyAxis> axes_;  // outermost axis of `to` first
  size_t element_;
  const void* from_;
  void* to_;
  int64_t count_ = 1;
};

// The axes of a whole tensor in two layouts without padding. Empty if they have no common axes
// (block sizes that do not divide one another): see relayout().
std::vector<CopyAxis> axes_between(const Shape& shape, const Layout& from, const Layout& to);

// y = x in another layout, one element per thread; zeroes the padding of y. Layouts may have at
// most one block per axis, otherwise kUnsupported.
void relayout(const Argument& x, const Argument& y, cudaStream_t stream);

// Output 0 is input 0 in memory order. Does nothing if the Plan gave both the same memory.
std::unique_ptr<Kernel> copy_kernel(KernelContext& context);

// Types of kernels that only move elements.
inline std::vector<DType> any_types() {
  return {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
          DType::kInt64,   DType::kInt32,   DType::kUInt8};
}

// For parts of a tensor along one axis (concat, slice). All arguments are channels last if one of
// them already is, otherwise plain: parts of an image are contiguous in either.
inline void slice_layouts(LayoutQuery& query) {
  bool last = false;
  for (int i = 0; i < query.input_count(); ++i) {
    const Shape& shape = query.input_var(i).shape;
    last = last || (shape.rank() == 4 && query.input(i) == Layout::channels_last(shape) &&
                    !query.input(i)->is_plain());
  }
  if (!last) return;
  for (int i = 0; i < query.input_count(); ++i) {
    query.need(i, Layout::channels_last(query.input_var(i).shape));
  }
  query.give(0, Layout::channels_last(query.output_var(0).shape));
}

// The copy between `part` and its position in `whole`, which begins at `start` along `axis`.
inline Copy copy_part(const Argument& part, const Argument& whole, int axis, int64_t start,
                      bool to_whole) {
  const size_t size = size_of(part.dtype);
  void* place =
      whole.as<char>() + start * whole.layout.strides()[axis] * static_cast<int64_t>(size);
  std::vector<CopyAxis> axes{{1, 1, 1}};
  for (int d = 0; d < part.shape.rank(); ++d) {
    const int64_t own = part.layout.strides()[d], in_whole = whole.layout.strides()[d];
    axes.push_back(to_whole ? CopyAxis{part.shape[d], own, in_whole}
                            : CopyAxis{part.shape[d], in_whole, own});
  }
  return to_whole ? Copy(axes, size, part.data, place) : Copy(axes, size, place, part.data);
}

}  // namespace fleet::cuda
