// Parts of a tensor along one axis, as concat and slice use them.
#pragma once

#include "backend/cuda/copies.h"

namespace fleet::cuda {

// All arguments are channels last if one of them already is, otherwise plain: parts of an image are
// contiguous in either.
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
