#include "backend/cpu/rows.h"

#include "backend/cpu/dnnl_glue.h"

namespace fleet::cpu {

Rows::Rows(const Layout& layout, int axis) : step(layout.strides()[axis]), block(1) {
  for (const Layout::Block& inner : layout.inner()) {
    if (inner.axis == axis) block *= inner.size;
  }
  row = layout.padded()[axis] / block * step;
  count = layout.elements() / row;
}

std::optional<Layout> row_pattern(const std::optional<Layout>& layout, const Shape& shape,
                                  int axis) {
  if (!layout || layout->is_opaque() || layout->padded().rank() != shape.rank() ||
      layout->padded()[axis] != shape[axis] || layout_like(*layout, shape) != *layout) {
    return std::nullopt;
  }
  return layout;
}

}  // namespace fleet::cpu
