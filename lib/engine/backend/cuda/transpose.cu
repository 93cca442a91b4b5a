#include "backend/cuda/copies.h"
#include "backend/cuda/device.h"
#include "backend/cuda/layouts.h"

namespace fleet {
namespace {

// The layout of y in which it has x's memory order. Empty if x's layout has blocks.
std::optional<Layout> turned(const Layout& x, const Shape& y, const std::vector<int64_t>& perm) {
  if (x.is_opaque() || !x.inner().empty() || x.elements() != y.elements()) return std::nullopt;
  std::vector<int64_t> strides;
  for (const int64_t axis : perm) strides.push_back(x.strides()[static_cast<size_t>(axis)]);
  return Layout::blocked(y, strides, {});
}

// Between N, C, H, W with the channels last and N, H, W, C, nothing has to be moved.
void transpose_layouts(LayoutQuery& query) {
  const auto& x = query.input(0);
  const Shape& y = query.output_var(0).shape;
  const std::optional<Layout> same =
      x ? turned(*x, y, query.attributes().integers("perm")) : std::nullopt;
  if (!same) return;
  query.need(0, *x);
  const bool last = y.rank() == 4 && *same == cuda::channels_last(y);
  if (!same->is_plain() && !last) return;
  query.give(0, same->is_plain() ? Layout::plain(y) : *same);
}

}  // namespace

FLEET_KERNEL(cuda, transpose) {
  def.dtypes = cuda::any_types();
  def.layouts = transpose_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const std::vector<int64_t>& perm = context.attributes().integers("perm");
    if (const auto same = turned(x.layout, y.shape, perm); same && y.layout.is_plain()) {
      if (same->is_plain()) return cuda::copy_kernel(context);
    } else if (same == y.layout) {
      return cuda::copy_kernel(context);
    }
    std::vector<cuda::CopyAxis> axes{{1, 1, 1}};
    for (size_t d = 0; d < perm.size(); ++d) {
      axes.push_back(
          {y.shape[static_cast<int>(d)], x.layout.strides()[perm[d]], y.layout.strides()[d]});
    }
    const cuda::Copy copy(axes, size_of(y.dtype), x.data, y.data);
    return make_kernel([=](Stream& stream) { copy.run(cuda::stream_of(stream)); });
  };
}

}  // namespace fleet
