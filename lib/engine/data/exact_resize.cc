#include "data/exact_resize.h"

#include <algorithm>
#include <cmath>

#include "base/cpu.h"
#include "base/error.h"

namespace fleet::data {
namespace {

// Kernels write whole groups of 4 pixels.
constexpr size_t kBehindRow = 64;

FLEET_SIMD void spread_grey(const uint8_t* row, int count, float scale, float bias, float* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<float>(row[i]) * scale + bias;
}

int32_t fixed_point(double weight) {
  const double scaled = weight * (1 << kExactBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace

ExactResizer::ExactResizer(const std::string& instruction_set)
    : kernels_(&exact_kernels().front()) {
  if (instruction_set.empty()) return;
  for (const ExactKernels& set : exact_kernels()) {
    if (set.name == instruction_set) {
      kernels_ = &set;
      return;
    }
  }
  throw Error(ErrorCode::kUnsupported, "this CPU has no " + instruction_set, "resize");
}

void ExactResizer::Axis::prepare(const CropGeometry& p, const Pixels& pixels, bool across,
                                 int multiple) {
  const int at = across ? p.tap_x : p.tap_y, size = across ? p.tap_width : p.tap_height;
  const int out = across ? p.out_width : p.out_height;
  const int offset = across ? p.resized_x : p.resized_y;
  const int region = across ? pixels.x : pixels.y, there = across ? pixels.width : pixels.height;
  resized = across ? p.resized_width : p.resized_height;
  if (resized == 0) resized = out;
  before = std::max(0, -offset);
  outputs = std::min(out, resized - offset) - before;
  // The rectangle in the (reduced) image; its edges need not be whole there.
  const int low = at / pixels.reduced;
  const double start = double(at) / pixels.reduced - low, extent = double(size) / pixels.reduced;
  source = (at + size + pixels.reduced - 1) / pixels.reduced - low;
  const int shift = low - region;
  resizes = start != 0 || extent != resized;
  if (!resizes) {
    first = offset + before + shift;
    end = first + outputs;
  } else {
    weigh(p.filter, start, extent, offset + before, multiple);
    if (across) keep_within(-shift, there - shift);
    first = *std::ranges::min_element(weights.from) + shift;
    end = 0;
    for (size_t i = 0; i < weights.from.size(); ++i) {
      weights.from[i] += shift;
      end = std::max(end, weights.from[i] + weights.count[i]);
    }
  }
  FLEET_CHECK(outputs > 0 && first >= 0 && end <= there, "a filter reads beyond the decoded part");
}

// Pillow's precompute_coeffs() and normalize_coeffs_8bpc() (src/libImaging/Resample.c).
void ExactResizer::Axis::weigh(Filter filter, double start, double extent, int offset,
                               int multiple) {
  const double scale = extent / resized, stretch = std::max(scale, 1.0), inverse = 1 / stretch;
  const double support = filter_support(filter) * stretch;
  const int padded = (outputs + 3) / 4 * 4;
  std::vector<int>&from = weights.from, &count = weights.count;
  from.assign(padded, 0);
  count.assign(padded, 0);
  int longest = 1;
  for (int i = 0; i < outputs; ++i) {
    const double centre = start + (offset + i + 0.5) * scale;
    from[i] = std::max(static_cast<int>(centre - support + 0.5), 0);
    count[i] = std::min(static_cast<int>(centre + support + 0.5), source) - from[i];
    longest = std::max(longest, count[i]);
  }
  weights.taps = (longest + multiple - 1) / multiple * multiple;
  weights.weights.assign(size_t(padded) * weights.taps, 0);
  std::vector<double> exact(weights.taps);
  for (int i = 0; i < outputs; ++i) {
    const double centre = start + (offset + i + 0.5) * scale;
    double sum = 0;
    for (int t = 0; t < count[i]; ++t) {
      exact[t] = filter_weight(filter, (t + from[i] - centre + 0.5) * inverse);
      sum += exact[t];
    }
    int32_t* weight = &weights.weights[size_t(i) * weights.taps];
    for (int t = 0; t < count[i]; ++t) {
      weight[t] = fixed_point(sum != 0 ? exact[t] / sum : exact[t]);
    }
  }
  for (int i = outputs; i < padded; ++i) from[i] = from[outputs - 1];
}

// Kernels read whole groups of pixels: those of [low, limit) only, with weights of 0 ahead. Rows
// that are narrower than a group are copied (source_row()).
void ExactResizer::Axis::keep_within(int low, int limit) {
  for (int i = 0; i < outputs; ++i) {
    const int ahead = std::min(weights.from[i] + weights.taps - limit, weights.from[i] - low);
    if (ahead <= 0) continue;
    int32_t* weight = &weights.weights[size_t(i) * weights.taps];
    const int moved = std::min(ahead, weights.taps - weights.count[i]);
    std::copy_backward(weight, weight + weights.count[i], weight + weights.count[i] + moved);
    std::fill_n(weight, moved, 0);
    weights.from[i] -= moved;
    weights.count[i] += moved;
  }
  std::fill(weights.from.begin() + outputs, weights.from.end(), weights.from[outputs - 1]);
}

void ExactResizer::Axis::mirror() {
  std::reverse(weights.from.begin(), weights.from.begin() + outputs);
  std::reverse(weights.count.begin(), weights.count.begin() + outputs);
  for (int i = 0, j = outputs - 1; i < j; ++i, --j) {
    int32_t* left = &weights.weights[size_t(i) * weights.taps];
    std::swap_ranges(left, left + weights.taps, &weights.weights[size_t(j) * weights.taps]);
  }
}

void ExactResizer::prepare(const Pixels& pixels, const CropGeometry& geometry) {
  x_.prepare(geometry, pixels, true, kernels_->taps);
  y_.prepare(geometry, pixels, false, 1);
  const int fewer_rows = y_.source - y_.resized, fewer_columns = x_.source - x_.resized;
  vertical_first_ = geometry.passes == PassOrder::kPillow13 && x_.resizes && y_.resizes &&
                    fewer_rows > 0 && fewer_rows > 2 * fewer_columns;
  if (x_.resizes) {
    if (geometry.flip) x_.mirror();
    if (lanes_ == 4) kernels_->pack(x_.weights, &packed_);
  }
  // The end of a row that is narrower than a filter may be read.
  const int longest = std::max(pixels.width, x_.outputs) + (x_.resizes ? x_.weights.taps : 0);
  row_bytes_ = (size_t(longest) * lanes_ + 2 * kBehindRow - 1) / kBehindRow * kBehindRow;
  const int rows = y_.resizes ? y_.weights.taps : 1;
  ring_.resize(row_bytes_ * rows);
  widened_.resize(row_bytes_);
  output_.resize(row_bytes_);
  taps_.resize(rows);
  made_ = 0;
}

// A row as pixels of lanes_ bytes: in place if it is one, and filters stay within it.
const uint8_t* ExactResizer::source_row(const Pixels& pixels, int row, uint8_t* widened) const {
  const uint8_t* from = pixels.data + row * pixels.stride;
  const bool narrow = x_.resizes && pixels.width < x_.weights.taps;
  if (pixels.step == lanes_ && !narrow) return from;
  if (pixels.step == lanes_) {
    std::copy_n(from, size_t(pixels.width) * lanes_, widened);
    return widened;
  }
  for (int x = 0; x < pixels.width; ++x) {
    for (int c = 0; c < 3; ++c) widened[4 * x + c] = from[3 * x + c];
  }
  return widened;
}

void ExactResizer::filter_row(const uint8_t* row, uint8_t* to) const {
  if (lanes_ == 1) return filter_grey_exactly(row, x_.weights, x_.outputs, to);
  kernels_->filter_rgbx(row, x_.weights.from.data(), packed_.data(), x_.weights.taps, x_.outputs,
                        to);
}

// A row that the vertical pass reads: filtered already, unless that pass comes first.
const uint8_t* ExactResizer::row_for_combining(const Pixels& pixels, int row) {
  const int rows = static_cast<int>(taps_.size());
  uint8_t* slot = &ring_[size_t(row % rows) * row_bytes_];
  if (!x_.resizes || vertical_first_) {
    if (pixels.step != lanes_ && row < made_) return slot + ptrdiff_t{x_.first} * lanes_;
    made_ = row + 1;
    return source_row(pixels, row, slot) + ptrdiff_t{x_.first} * lanes_;
  }
  if (row >= made_) {
    filter_row(source_row(pixels, row, widened_.data()), slot);
    made_ = row + 1;
  }
  return slot;
}

const uint8_t* ExactResizer::output_row(const Pixels& pixels, int y) {
  if (!y_.resizes) return row_for_combining(pixels, y_.first + y);
  const int from = y_.weights.from[y], count = y_.weights.count[y];
  for (int t = 0; t < count; ++t) taps_[t] = row_for_combining(pixels, from + t);
  const int32_t* weights = &y_.weights.weights[size_t(y) * y_.weights.taps];
  const int columns = vertical_first_ ? x_.end - x_.first : x_.outputs;
  uint8_t* to = vertical_first_ ? &widened_[size_t(x_.first) * lanes_] : output_.data();
  kernels_->combine(taps_.data(), weights, count, size_t(columns) * lanes_, to);
  if (!vertical_first_) return to;
  filter_row(widened_.data(), output_.data());
  return output_.data();
}

void ExactResizer::write_planes(const uint8_t* row, const CropGeometry& p, const float* scale,
                                const float* bias, float* to) const {
  const int64_t plane = int64_t{p.out_height} * p.out_width;
  const int channels = lanes_ == 1 ? 1 : 3, after = p.out_width - x_.before - x_.outputs;
  const int left = p.flip ? after : x_.before;
  if (!row || x_.outputs < p.out_width) {
    for (int c = 0; c < channels; ++c) {
      std::fill_n(to + c * plane, p.out_width, float(p.fill[c]) * scale[c] + bias[c]);
    }
  }
  if (!row) return;
  if (lanes_ == 1) {
    spread_grey(row, x_.outputs, scale[0], bias[0], to + left);
  } else {
    kernels_->spread_rgbx(row, x_.outputs, scale, bias, plane, to + left);
  }
  if (!p.flip || x_.resizes) return;
  for (int c = 0; c < channels; ++c) {
    std::reverse(to + c * plane + left, to + c * plane + left + x_.outputs);
  }
}

void ExactResizer::run(const Pixels& pixels, const CropGeometry& geometry, int channels,
                       const float* scale, const float* bias, float* out) {
  lanes_ = channels == 1 ? 1 : 4;
  prepare(pixels, geometry);
  for (int y = 0; y < geometry.out_height; ++y, out += geometry.out_width) {
    const bool inside = y >= y_.before && y < y_.before + y_.outputs;
    const uint8_t* row = inside ? output_row(pixels, y - y_.before) : nullptr;
    write_planes(row, geometry, scale, bias, out);
  }
}

}  // namespace fleet::data
