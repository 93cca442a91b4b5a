#include "backend/cpu/channel_runs.h"

#include <dnnl.hpp>

#include "base/error.h"

namespace fleet::cpu {
namespace {

// The elements of one channel of one image.
int64_t pixels_of(const Shape& shape) {
  int64_t pixels = 1;
  for (int d = 2; d < shape.rank(); ++d) pixels *= shape[d];
  return pixels;
}

int64_t lanes_of(const Layout& layout) {
  return layout.inner().empty() ? 1 : layout.inner()[0].size;
}

}  // namespace

int64_t native_channel_block() {
  const auto effective = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [&](dnnl::cpu_isa isa) {
    return (effective & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
  };
  return has(dnnl::cpu_isa::avx512_core) ? 16 : has(dnnl::cpu_isa::avx2) ? 8 : 1;
}

Layout blocked_image(const Shape& shape, int64_t block) {
  if (block == 1) return Layout::plain(shape);
  const int64_t height = shape[2], row = shape[3] * block;
  const Shape padded = {shape[0], (shape[1] + block - 1) / block * block, height, shape[3]};
  return Layout::blocked(padded, {padded[1] * height * shape[3], height * row, row, block},
                         {{1, block}});
}

bool has_channel_runs(const Layout& layout, const Shape& shape) {
  if (layout.is_opaque() || layout.padded().rank() != shape.rank()) return false;
  if (layout.inner().size() > 1) return false;
  if (!layout.inner().empty() && layout.inner()[0].axis != 1) return false;
  const int64_t lanes = lanes_of(layout);
  if (lanes != 1 && lanes != 8 && lanes != 16) return false;
  int64_t step = lanes;  // the remaining axes are ordered as in the plain layout
  for (int d = shape.rank() - 1; d >= 2; --d) {
    if (shape[d] > 1 && layout.strides()[d] != step) return false;
    if (layout.padded()[d] != shape[d]) return false;
    step *= shape[d];
  }
  return layout.padded()[0] == shape[0] &&
         (layout.padded()[1] == lanes || layout.strides()[1] >= step);
}

Layout channel_run_layout(const LayoutQuery& query) {
  const Shape& x = query.input_var(0).shape;
  const std::optional<Layout>& now = query.input(0);
  return now && has_channel_runs(*now, x) ? *now : Layout::plain(x);
}

ChannelRuns::ChannelRuns(const Shape& shape, const Layout& layout)
    : images(shape[0]),
      channels(shape[1]),
      lanes(lanes_of(layout)),
      groups((shape[1] + lanes - 1) / lanes),
      length(pixels_of(shape) * lanes),
      tiles((length + kTileLanes - 1) / kTileLanes),
      values(shape[0] * pixels_of(shape)),
      image_stride(layout.strides()[0]),
      group_stride(layout.strides()[1]) {
  FLEET_CHECK(has_channel_runs(layout, shape), "channels in a layout " + layout.text());
}

}  // namespace fleet::cpu
