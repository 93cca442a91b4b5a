#include "backend/cpu/channel_scale.h"

namespace fleet::cpu {
namespace {

constexpr int64_t kAtOnce = 64 * kTileLanes;  // elements between additions in double

template <typename T>
FLEET_SIMD void multiply_run(const T* x, const float* factors, int64_t count, T* y) {
  const Tile factor = load(factors);
  const int64_t whole = count - count % kTileLanes;
  for (int64_t i = 0; i < whole; i += kTileLanes) store(y + i, load(x + i) * factor);
  for (int64_t i = whole; i < count; ++i) y[i] = x[i] * factors[i - whole];
}

// sums[i] += dy * x over the elements of each position in the tile. dx is stored if it is given.
template <typename T>
FLEET_SIMD void gradient_of_run(const T* x, const T* dy, const float* factors, int64_t count, T* dx,
                                double* sums) {
  const Tile factor = load(factors);
  const int64_t whole = count - count % kTileLanes;
  for (int64_t begin = 0; begin < whole; begin += kAtOnce) {
    Tile sum = {};
    for (int64_t i = begin; i < std::min(begin + kAtOnce, whole); i += kTileLanes) {
      const Tile slope = load(dy + i);
      sum += slope * load(x + i);
      if (dx) store(dx + i, slope * factor);
    }
    for (int64_t l = 0; l < kTileLanes; ++l) sums[l] += sum[l];
  }
  for (int64_t i = whole; i < count; ++i) {
    const float slope = dy[i];
    sums[i - whole] += slope * x[i];
    if (dx) dx[i] = slope * factors[i - whole];
  }
}

bool are_of_channels(const Shape& x, const Broadcast& b) {
  return x.rank() > 2 && b.outer == 1 && b.middle == x[0] * x[1] && b.inner > 1;
}

bool is_blocked(const Layout& layout, const Shape& shape) {
  return has_channel_runs(layout, shape) && !layout.inner().empty();
}

}  // namespace

std::optional<Layout> ChannelScale::layout_for(const LayoutQuery& query, const Broadcast& b) {
  const Shape& x = query.input_var(0).shape;
  const std::optional<Layout>& now = query.input(0);
  return now && are_of_channels(x, b) && is_blocked(*now, x) ? now : std::nullopt;
}

bool ChannelScale::is_for(const Argument& x, const Broadcast& b) {
  return are_of_channels(x.shape, b) && is_blocked(x.layout, x.shape);
}

template <typename T>
void ChannelScale::multiply(const T* x, const T* factors, T* y) const {
  const ChannelRuns& r = runs_;
#pragma omp parallel for collapse(2) if (r.images * r.image_stride >= kParallelElements)
  for (int64_t image = 0; image < r.images; ++image) {
    for (int64_t group = 0; group < r.groups; ++group) {
      float tile[kTileLanes];
      r.fill(tile, group, [&](int64_t channel) { return factors[image * r.channels + channel]; });
      const int64_t at = r.offset(image, group);
      multiply_run(x + at, tile, r.length, y + at);
    }
  }
}

template <typename T>
void ChannelScale::gradient(const T* x, const T* factors, const T* dy, T* dx, T* dfactors) const {
  const ChannelRuns& r = runs_;
#pragma omp parallel for collapse(2) if (r.images * r.image_stride >= kParallelElements)
  for (int64_t image = 0; image < r.images; ++image) {
    for (int64_t group = 0; group < r.groups; ++group) {
      float tile[kTileLanes];
      double sums[kTileLanes] = {};
      r.fill(tile, group, [&](int64_t channel) { return factors[image * r.channels + channel]; });
      const int64_t at = r.offset(image, group);
      gradient_of_run(x + at, dy + at, tile, r.length, dx ? dx + at : nullptr, sums);
      for (int64_t lane = 0; lane < r.lanes; ++lane) {
        const int64_t channel = group * r.lanes + lane;
        if (channel >= r.channels) break;
        dfactors[image * r.channels + channel] = static_cast<float>(r.fold(sums, lane));
      }
    }
  }
}

template void ChannelScale::multiply(const float*, const float*, float*) const;
template void ChannelScale::multiply(const BFloat16*, const BFloat16*, BFloat16*) const;
template void ChannelScale::gradient(const float*, const float*, const float*, float*,
                                     float*) const;
template void ChannelScale::gradient(const BFloat16*, const BFloat16*, const BFloat16*, BFloat16*,
                                     BFloat16*) const;

}  // namespace fleet::cpu
