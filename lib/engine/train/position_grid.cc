#include "train/position_grid.h"

#include <algorithm>

#include "train/resize_taps.h"

namespace fleet {
namespace {

std::vector<Taps> taps_of_rule(int64_t in, int64_t out, PositionRule rule) {
  constexpr double kMetasOffset = 0.1;
  switch (rule) {
    case PositionRule::kTimm:
      return antialiased_taps(in, out);
    case PositionRule::kTorchvision:
      return corner_taps(in, out);
    case PositionRule::kMeta:
      break;
  }
  return bicubic_taps(in, out, static_cast<double>(in) / (static_cast<double>(out) + kMetasOffset));
}

std::vector<Taps> taps_of_rule(int64_t in, int64_t out, OffsetRule rule) {
  if (rule == OffsetRule::kTimm) return progression_taps(in, out);
  return bicubic_taps(in, out, static_cast<double>(in) / static_cast<double>(out));
}

// grid: `rows_in` rows of `columns_in` places of `width` values. Appends the new grid.
void append_resampled(const float* grid, int64_t rows_in, int64_t columns_in, int64_t width,
                      const std::vector<Taps>& rows, const std::vector<Taps>& columns,
                      std::vector<float>* resized) {
  const auto count = static_cast<size_t>(width);
  const auto columns_out = static_cast<int64_t>(columns.size());
  std::vector<double> across(static_cast<size_t>(rows_in * columns_out) * count);
  for (int64_t y = 0; y < rows_in; ++y) {
    for (int64_t x = 0; x < columns_out; ++x) {
      const Taps& taps = columns[static_cast<size_t>(x)];
      double* sum = &across[static_cast<size_t>(y * columns_out + x) * count];
      for (size_t tap = 0; tap < taps.places.size(); ++tap) {
        const float* one = grid + (y * columns_in + taps.places[tap]) * width;
        for (size_t i = 0; i < count; ++i) sum[i] += taps.weights[tap] * one[i];
      }
    }
  }
  std::vector<double> sum(count);
  for (const Taps& taps : rows) {
    for (int64_t x = 0; x < columns_out; ++x) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (size_t tap = 0; tap < taps.places.size(); ++tap) {
        const double* one =
            &across[static_cast<size_t>(taps.places[tap] * columns_out + x) * count];
        for (size_t i = 0; i < count; ++i) sum[i] += taps.weights[tap] * one[i];
      }
      for (const double value : sum) resized->push_back(static_cast<float>(value));
    }
  }
}

}  // namespace

std::vector<float> resized_positions(std::span<const float> table, int64_t prefix, int64_t width,
                                     const PositionGrid& from, const PositionGrid& to,
                                     PositionRule rule) {
  std::vector<float> resized(table.begin(), table.begin() + prefix * width);
  append_resampled(table.data() + prefix * width, from.height, from.width, width,
                   taps_of_rule(from.height, to.height, rule),
                   taps_of_rule(from.width, to.width, rule), &resized);
  return resized;
}

std::vector<float> resized_offsets(std::span<const float> table, int64_t heads,
                                   const PositionGrid& from, const PositionGrid& to,
                                   OffsetRule rule) {
  const auto offsets = [](int64_t window) { return 2 * window - 1; };
  std::vector<float> resized;
  append_resampled(table.data(), offsets(from.height), offsets(from.width), heads,
                   taps_of_rule(offsets(from.height), offsets(to.height), rule),
                   taps_of_rule(offsets(from.width), offsets(to.width), rule), &resized);
  return resized;
}

}  // namespace fleet
