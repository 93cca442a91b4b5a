#include "backend/cpu/channel_scale.h"

#include "backend/cpu/dnnl_glue.h"

namespace fleet::cpu {
namespace {

template <bool single, typename T>
FLEET_INLINE void multiply_as(const Span& s, const T* x, const float* factors, T* y) {
  const int64_t stride = Span::known<single>(s.stride);
  const auto factor = [=](int64_t lane) __attribute__((always_inline)) {
    return load(factors + lane);
  };
  for_each_tile<single>(
      s, factor, [=](int64_t row, int64_t lane, const Tile& factor) __attribute__((always_inline)) {
        store(y + row * stride + lane, load(x + row * stride + lane) * factor);
      });
  const int64_t at = s.rows * stride;
  for (int64_t l = 0; l < s.tail; ++l) y[at + l] = x[at + l] * factors[l];
}

template <typename T>
FLEET_SIMD void multiply_run(const Span& span, const T* x, const float* factors, T* y) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        multiply_as<single>(span, x, factors, y);
      });
}

template <bool single, bool stored, typename T>
FLEET_INLINE void gradient_as(const Span& s, const T* x, const T* dy, const float* factors, T* dx,
                              double* sums, double* unused) {
  const int64_t stride = Span::known<single>(s.stride);
  const auto factor = [=](int64_t lane) __attribute__((always_inline)) {
    return load(factors + lane);
  };
  const auto add = [=](int64_t row, int64_t lane, const Tile& factor, Tile& sum, Tile&)
      __attribute__((always_inline)) {
    const int64_t i = row * stride + lane;
    const Tile slope = load(dy + i);
    sum += slope * load(x + i);
    if constexpr (stored) store(dx + i, slope * factor);
  };
  sum_tiles<single>(s, sums, unused, factor, add);
  const int64_t at = s.rows * stride;
  for (int64_t l = 0; l < s.tail; ++l) {
    const float slope = dy[at + l];
    sums[l] += slope * x[at + l];
    if constexpr (stored) dx[at + l] = slope * factors[l];
  }
}

// sums += dy * x over the rows. dx is stored if it is given. unused: memory like that of sums.
template <typename T>
FLEET_SIMD void gradient_of_run(const Span& span, const T* x, const T* dy, const float* factors,
                                T* dx, double* sums, double* unused) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        dx ? gradient_as<single, true>(span, x, dy, factors, dx, sums, unused)
           : gradient_as<single, false>(span, x, dy, factors, dx, sums, unused);
      });
}

bool are_of_channels(const Shape& x, const Broadcast& b) {
  return x.rank() > 2 && b.outer == 1 && b.middle == x[0] * x[1] && b.inner > 1;
}

// Plain images have faster loops.
bool is_of_convolutions(const Layout& layout, const Shape& shape) {
  return is_channels_last(layout, shape) ||
         (has_channel_runs(layout, shape) && !layout.inner().empty());
}

ChannelRuns runs_of_image(const Shape& x, const Layout& layout) {
  Shape image = x;
  image[0] = 1;
  return {image, layout_like(layout, image)};
}

}  // namespace

std::optional<Layout> ChannelScale::layout_for(const LayoutQuery& query, const Broadcast& b) {
  const Shape& x = query.input_var(0).shape;
  const std::optional<Layout>& now = query.input(0);
  return now && are_of_channels(x, b) && is_of_convolutions(*now, x) ? now : std::nullopt;
}

bool ChannelScale::is_for(const Argument& x, const Broadcast& b) {
  return are_of_channels(x.shape, b) && is_of_convolutions(x.layout, x.shape);
}

ChannelScale::ChannelScale(const Argument& x)
    : images_(x.shape[0]),
      image_stride_(x.layout.strides()[0]),
      runs_(runs_of_image(x.shape, x.layout)) {}

size_t ChannelScale::workspace(const Shape& x, const Layout& layout) {
  return static_cast<size_t>(x[0] * runs_of_image(x, layout).sums()) * sizeof(double);
}

template <typename T, typename Body>
void ChannelScale::for_each_run(const T* factors, Body body) const {
  const ChannelRuns& r = runs_;
#pragma omp parallel for collapse(3) if (images_ * image_stride_ >= kParallelElements)
  for (int64_t image = 0; image < images_; ++image) {
    for (int64_t part = 0; part < r.parts; ++part) {
      for (int64_t group = 0; group < r.groups; ++group) {
        float tiles[kMaxColumns * kTileLanes];
        r.values_at(group, factors + image * r.channels, tiles);
        body(image, part, group, tiles, image * image_stride_ + r.offset(part, group));
      }
    }
  }
}

template <typename T>
void ChannelScale::multiply(const T* x, const T* factors, T* y) const {
  for_each_run(factors, [&](int64_t, int64_t part, int64_t group, const float* tiles, int64_t at) {
    multiply_run(runs_.span(part, group), x + at, tiles, y + at);
  });
}

template <typename T>
void ChannelScale::gradient(const T* x, const T* factors, const T* dy, T* dx, T* dfactors,
                            void* workspace) const {
  const ChannelRuns& r = runs_;
  const auto sums_of = [&](int64_t image, int64_t part, int which) {
    return static_cast<double*>(workspace) + image * r.sums() + r.sums_of(part, which);
  };
  for_each_run(
      factors, [&](int64_t image, int64_t part, int64_t group, const float* tiles, int64_t at) {
        const Span span = r.span(part, group);
        double* sums = sums_of(image, part, 0) + r.position(group);
        double* unused = sums_of(image, part, 1) + r.position(group);
        std::fill_n(sums, span.columns * kTileLanes, 0.0);
        std::fill_n(unused, span.columns * kTileLanes, 0.0);
        gradient_of_run(span, x + at, dy + at, tiles, dx ? dx + at : nullptr, sums, unused);
      });
#pragma omp parallel for collapse(2) if (images_ * image_stride_ >= kParallelElements)
  for (int64_t image = 0; image < images_; ++image) {
    for (int64_t channel = 0; channel < r.channels; ++channel) {
      double sum = 0;
      for (int64_t part = 0; part < r.parts; ++part) {
        const double* sums = sums_of(image, part, 0);
        r.for_each_position(channel, [&](int64_t p) { sum += sums[p]; });
      }
      dfactors[image * r.channels + channel] = static_cast<float>(sum);
    }
  }
}

template void ChannelScale::multiply(const float*, const float*, float*) const;
template void ChannelScale::multiply(const BFloat16*, const BFloat16*, BFloat16*) const;
template void ChannelScale::gradient(const float*, const float*, const float*, float*, float*,
                                     void*) const;
template void ChannelScale::gradient(const BFloat16*, const BFloat16*, const BFloat16*, BFloat16*,
                                     BFloat16*, void*) const;

}  // namespace fleet::cpu
