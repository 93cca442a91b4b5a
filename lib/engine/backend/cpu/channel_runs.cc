#include "backend/cpu/channel_runs.h"

#include <algorithm>
#include <dnnl.hpp>
#include <numeric>

#include "base/error.h"

namespace fleet::cpu {
namespace {

// Elements of a piece of a batch with channels last. Its groups are read one after another, so it
// should stay in the cache, together with those of other images. With fewer rows, sums would take
// too much memory.
constexpr int64_t kPieceElements = 16384;
constexpr int64_t kPieceRows = 64;

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

namespace {

// Plain, or in blocks of channels.
bool has_image_runs(const Layout& layout, const Shape& shape) {
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

}  // namespace

bool is_channels_last(const Layout& layout, const Shape& shape) {
  return !layout.is_opaque() && shape.rank() > 2 && layout == Layout::channels_last(shape) &&
         !has_image_runs(layout, shape);
}

bool has_channel_runs(const Layout& layout, const Shape& shape) {
  return has_image_runs(layout, shape) || is_channels_last(layout, shape);
}

Layout channel_run_layout(const LayoutQuery& query) {
  const Shape& x = query.input_var(0).shape;
  const std::optional<Layout>& now = query.input(0);
  return now && has_channel_runs(*now, x) ? *now : Layout::plain(x);
}

ChannelRuns::ChannelRuns(const Shape& shape, const Layout& layout)
    : channels(shape[1]),
      values(shape[0] * pixels_of(shape)),
      last_(is_channels_last(layout, shape)),
      lanes_(last_ ? kTileLanes : lanes_of(layout)),
      part_stride_(layout.strides()[0]),
      group_stride_(layout.strides()[1]),
      elements_(shape.elements()) {
  FLEET_CHECK(has_channel_runs(layout, shape), "channels in a layout " + layout.text());
  settled = lanes_;
  if (!last_) {
    parts = shape[0];
    groups = (channels + lanes_ - 1) / lanes_;
    positions = groups * kTileLanes;
    length_ = pixels_of(shape) * lanes_;
    return;
  }
  // All pixels of the batch as one matrix. Its rows are the fewest pixels that fill whole tiles.
  positions = std::lcm(channels, kTileLanes);
  const int64_t columns = positions / kTileLanes;
  groups = (columns + kMaxColumns - 1) / kMaxColumns;
  const int64_t rows = elements_ / positions;
  const int64_t rows_of_piece = std::max(kPieceElements / positions, kPieceRows);
  parts = std::max<int64_t>((rows + rows_of_piece - 1) / rows_of_piece, 1);
  length_ = part_stride_ = rows_of_piece * positions;
}

int64_t ChannelRuns::offset(int64_t part, int64_t group) const {
  return part * part_stride_ + (last_ ? position(group) : group * group_stride_);
}

Span ChannelRuns::span(int64_t part, int64_t group) const {
  if (!last_) return {length_ / kTileLanes, 1, kTileLanes, length_ % kTileLanes};
  const int64_t left = elements_ - part * length_;
  const bool is_end = part == parts - 1;
  const int64_t width = columns(group) * kTileLanes;
  const int64_t rows = is_end ? left / positions : length_ / positions;
  const int64_t tail =
      is_end ? std::clamp<int64_t>(left % positions - position(group), 0, width) : 0;
  return {rows, columns(group), positions, tail};
}

int64_t ChannelRuns::values_of(int64_t part) const {
  if (!last_) return length_ / lanes_;
  return (part == parts - 1 ? elements_ - part * length_ : length_) / channels;
}

int64_t ChannelRuns::tile(int64_t part, int64_t group) const {
  if (last_) return offset(part, group) / kTileLanes;
  return (part * groups + group) * ((length_ + kTileLanes - 1) / kTileLanes);
}

int64_t ChannelRuns::tiles() const {
  return last_ ? (elements_ + kTileLanes - 1) / kTileLanes : tile(parts, 0);
}

}  // namespace fleet::cpu
