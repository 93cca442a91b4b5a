#include "data/resize.h"

#include <algorithm>
#include <cmath>

#include "base/cpu.h"
#include "base/error.h"

namespace fleet::data {
namespace {

using V4f = float __attribute__((vector_size(16)));
using V8f = float __attribute__((vector_size(32)));
using V16f = float __attribute__((vector_size(64)));

namespace baseline {
#define FLEET_LANES 4
#include "data/resize_rows.inc"
#undef FLEET_LANES
}  // namespace baseline

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#define FLEET_LANES 8
#include "data/resize_rows.inc"
#undef FLEET_LANES
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
namespace avx512 {
#define FLEET_LANES 16
#include "data/resize_rows.inc"
#undef FLEET_LANES
}  // namespace avx512
#pragma GCC pop_options
#endif

}  // namespace

struct Resizer::Kernels {
  decltype(&baseline::widen) widen;
  decltype(&baseline::filter_rgbx) filter_rgbx;
  decltype(&baseline::combine_rgbx) combine_rgbx;
  decltype(&baseline::filter_grey) filter_grey;
  decltype(&baseline::combine_grey) combine_grey;
  const char* name;
};

namespace {

using Kernels = Resizer::Kernels;

#define FLEET_RESIZE_KERNELS(set)                                                              \
  Kernels {                                                                                    \
    set::widen, set::filter_rgbx, set::combine_rgbx, set::filter_grey, set::combine_grey, #set \
  }

// The instruction sets that this CPU supports, fastest first.
const std::vector<Kernels>& supported() {
  static const std::vector<Kernels> sets = [] {
    std::vector<Kernels> all;
#if defined(__x86_64__)
    if (FLEET_X86_HAS("avx512bw") && FLEET_X86_HAS("avx512vl") && FLEET_X86_HAS("avx512dq")) {
      all.push_back(FLEET_RESIZE_KERNELS(avx512));
    }
    if (FLEET_X86_HAS("avx2") && FLEET_X86_HAS("fma")) {
      all.push_back(FLEET_RESIZE_KERNELS(avx2));
    }
#endif
    all.push_back(FLEET_RESIZE_KERNELS(baseline));
    return all;
  }();
  return sets;
}

}  // namespace

std::vector<std::string> resize_instruction_sets() {
  std::vector<std::string> names;
  for (const Kernels& set : supported()) names.push_back(set.name);
  return names;
}

Resizer::Resizer(const std::string& instruction_set) : kernels_(&supported().front()) {
  if (instruction_set.empty()) return;
  for (const Kernels& set : supported()) {
    if (set.name == instruction_set) {
      kernels_ = &set;
      return;
    }
  }
  throw Error(ErrorCode::kUnsupported, "this CPU has no " + instruction_set, "resize");
}

// Pillow's precompute_coeffs (src/libImaging/Resample.c) for the triangle filter.
void Resizer::Axis::prepare(double at, double extent, int outputs, int low, int high,
                            int multiple) {
  const double scale = extent / outputs, filter = std::max(scale, 1.0);
  from.resize(outputs);
  count.resize(outputs);
  taps = 0;
  for (int i = 0; i < outputs; ++i) {
    const double centre = at + (i + 0.5) * scale;
    from[i] = std::clamp(static_cast<int>(std::floor(centre - filter + 0.5)), low, high - 1);
    const int end =
        std::clamp(static_cast<int>(std::floor(centre + filter + 0.5)), from[i] + 1, high);
    count[i] = end - from[i];
    taps = std::max(taps, count[i]);
  }
  taps = (taps + multiple - 1) / multiple * multiple;
  weights.assign(size_t(outputs) * taps, 0.0f);
  for (int i = 0; i < outputs; ++i) {
    const double first = from[i] - (at + (i + 0.5) * scale) + 0.5;
    float* weight = &weights[size_t(i) * taps];
    double sum = 0;
    for (int t = 0; t < count[i]; ++t) {
      const double value = std::max(0.0, 1.0 - std::abs(first + t) / filter);
      weight[t] = static_cast<float>(value);
      sum += value;
    }
    if (sum <= 0) {  // a box narrower than the pixel grid
      weight[0] = 1;
      sum = 1;
    }
    const auto normal = static_cast<float>(1 / sum);
    for (int t = 0; t < count[i]; ++t) weight[t] *= normal;
  }
}

void Resizer::horizontal(const Pixels& pixels, int row, int out_width, int channels, float* to) {
  const uint8_t* source = pixels.data + row * pixels.stride;
  const int lanes = channels == 1 ? 1 : 4;
  // Filters read beyond the end of the row, with weight 0.
  widened_.resize(size_t(pixels.width + x_.taps) * lanes);
  if (pixels.step == lanes) {
    kernels_->widen(source, pixels.width * lanes, widened_.data());
  } else {
    for (int x = 0; x < pixels.width; ++x) {
      for (int c = 0; c < 3; ++c) widened_[4 * x + c] = source[3 * x + c];
    }
  }
  const auto filter = channels == 1 ? kernels_->filter_grey : kernels_->filter_rgbx;
  filter(widened_.data(), x_.from.data(), lanes_.data(), x_.taps, out_width, to);
}

// The part of the output that the resized image covers, as a geometry of its own.
static CropGeometry inner_part(const CropGeometry& p, int left, int top) {
  CropGeometry inner = p;
  inner.resized_x = std::max(p.resized_x, 0);
  inner.resized_y = std::max(p.resized_y, 0);
  inner.out_width = std::min(p.out_width - left, p.resized_width - inner.resized_x);
  inner.out_height = std::min(p.out_height - top, p.resized_height - inner.resized_y);
  inner.x = std::max(p.x, 0.0);
  inner.y = std::max(p.y, 0.0);
  inner.width = p.width / p.out_width * inner.out_width;
  inner.height = p.height / p.out_height * inner.out_height;
  return inner;
}

void Resizer::run_padded(const Pixels& pixels, const CropGeometry& p, int channels,
                         const float* scale, const float* bias, float* out) {
  int left = std::max(-p.resized_x, 0);
  const int top = std::max(-p.resized_y, 0);
  const CropGeometry inner = inner_part(p, left, top);
  if (p.flip) left = p.out_width - left - inner.out_width;
  inner_.resize(size_t(channels) * inner.out_height * inner.out_width);
  run(pixels, inner, channels, scale, bias, inner_.data());
  const float* from = inner_.data();
  for (int c = 0; c < channels; ++c, out += int64_t{p.out_height} * p.out_width) {
    std::fill_n(out, size_t(p.out_height) * p.out_width, float(p.fill[c]) * scale[c] + bias[c]);
    for (int y = 0; y < inner.out_height; ++y, from += inner.out_width) {
      std::copy_n(from, inner.out_width, out + int64_t{top + y} * p.out_width + left);
    }
  }
}

void Resizer::run(const Pixels& pixels, const CropGeometry& p, int channels, const float* scale,
                  const float* bias, float* out) {
  if (p.resized_width > 0 &&
      (p.resized_x < 0 || p.resized_y < 0 || p.resized_x + p.out_width > p.resized_width ||
       p.resized_y + p.out_height > p.resized_height)) {
    return run_padded(pixels, p, channels, scale, bias, out);
  }
  const double reduced = pixels.reduced;
  // The range that filters may read: the geometry's tap rectangle, limited to the decoded part.
  const auto low = [&](int tap, int from) {
    return std::max(static_cast<int>(std::floor(tap / reduced)) - from, 0);
  };
  const auto high = [&](int tap, int from, int there) {
    return std::min(static_cast<int>(std::ceil(tap / reduced)) - from, there);
  };
  x_.prepare(p.x / reduced - pixels.x, p.width / reduced, p.out_width, low(p.tap_x, pixels.x),
             high(p.tap_x + p.tap_width, pixels.x, pixels.width), channels == 1 ? 1 : 4);
  y_.prepare(p.y / reduced - pixels.y, p.height / reduced, p.out_height, low(p.tap_y, pixels.y),
             high(p.tap_y + p.tap_height, pixels.y, pixels.height), 1);
  if (p.flip) {
    std::reverse(x_.from.begin(), x_.from.end());
    for (int i = 0, j = p.out_width - 1; i < j; ++i, --j) {
      std::swap_ranges(&x_.weights[size_t(i) * x_.taps], &x_.weights[size_t(i) * x_.taps] + x_.taps,
                       &x_.weights[size_t(j) * x_.taps]);
    }
  }
  const int lanes = channels == 1 ? 1 : 4;
  lanes_.resize(x_.weights.size() * lanes);
  for (size_t i = 0; i < x_.weights.size(); ++i) {
    std::fill_n(&lanes_[i * lanes], lanes, x_.weights[i]);
  }

  const size_t length = (size_t(p.out_width) * lanes + 63) / 64 * 64;
  rows_.resize(length * y_.taps);
  taps_.resize(y_.taps);
  const int64_t plane = int64_t{p.out_height} * p.out_width;
  int filtered = y_.from[0];  // rows before it are in the ring
  for (int y = 0; y < p.out_height; ++y) {
    const int first = y_.from[y], count = y_.count[y];
    for (filtered = std::max(filtered, first); filtered < first + count; ++filtered) {
      horizontal(pixels, filtered, p.out_width, channels, &rows_[filtered % y_.taps * length]);
    }
    for (int t = 0; t < count; ++t) taps_[t] = &rows_[(first + t) % y_.taps * length];
    const float* weights = &y_.weights[size_t(y) * y_.taps];
    float* to = out + int64_t{y} * p.out_width;
    if (channels == 1) {
      kernels_->combine_grey(taps_.data(), weights, count, p.out_width, scale[0], bias[0], to);
    } else {
      kernels_->combine_rgbx(taps_.data(), weights, count, p.out_width, scale, bias, plane, to);
    }
  }
}

}  // namespace fleet::data
