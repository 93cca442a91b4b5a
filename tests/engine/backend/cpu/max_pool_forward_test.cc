#include "backend/cpu/max_pool_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tensor/host.h"
#include "tests/engine/ops/image_layouts.h"

namespace fleet {
namespace {

struct MaxPoolForwardCase {
  Shape x, y;
  int64_t kernel, stride, padding;
};

// The first largest value of a window and its position; a NaN is larger than all.
std::pair<float, int> largest_of(const MaxPoolForwardCase& c, const std::vector<float>& x,
                                 int64_t lanes, int64_t i) {
  const int64_t lane = i % lanes, ow = i / lanes % c.y[3], oh = i / lanes / c.y[3] % c.y[2];
  const int64_t plane = i / lanes / c.y[3] / c.y[2];
  float best = 0;
  int position = -1;
  for (int64_t k = 0; k < c.kernel * c.kernel; ++k) {
    const int64_t h = oh * c.stride - c.padding + k / c.kernel;
    const int64_t w = ow * c.stride - c.padding + k % c.kernel;
    if (h < 0 || w < 0 || h >= c.x[2] || w >= c.x[3]) continue;
    const float value = x[((plane * c.x[2] + h) * c.x[3] + w) * lanes + lane];
    if (position < 0 || value > best || std::isnan(value)) {
      best = value;
      position = static_cast<int>(k);
    }
  }
  return {best, position};
}

void check(const MaxPoolForwardCase& c, int64_t lanes) {
  SCOPED_TRACE(c.x.text() + " in blocks of " + std::to_string(lanes));
  const Layout x_layout = blocked_channels(c.x, lanes), y_layout = blocked_channels(c.y, lanes);
  std::vector<float> x(x_layout.elements()), y(y_layout.elements(), -1);
  std::vector<uint8_t> mask(y.size(), 255);
  std::mt19937 random(3);
  for (float& value : x) value = static_cast<float>(random() % 20) - 15;  // many are equal
  x[5] = std::numeric_limits<float>::quiet_NaN();
  x[std::min<size_t>(lanes + 6, x.size() - 1)] = -std::numeric_limits<float>::infinity();
  const Window window{{c.kernel, c.kernel}, {c.stride, c.stride}, {c.padding, c.padding}, {1, 1}};
  HostDevice device;
  const auto stream = device.make_stream("");
  cpu::MaxPoolForward::make(window, {.data = x.data(), .shape = c.x, .layout = x_layout},
                            {.data = y.data(), .shape = c.y, .layout = y_layout}, mask.data())
      ->run(*stream);
  for (size_t i = 0; i < y.size(); ++i) {
    const auto [best, position] = largest_of(c, x, lanes, static_cast<int64_t>(i));
    ASSERT_EQ(std::isnan(y[i]), std::isnan(best)) << "element " << i;
    if (!std::isnan(best)) {
      ASSERT_EQ(y[i], best) << "element " << i;
    }
    ASSERT_EQ(mask[i], position) << "element " << i;
  }
}

TEST(MaxPoolForward, Blocks_MatchReference) {
  for (const int64_t lanes : {8, 16}) {
    check({{2, 16, 7, 9}, {2, 16, 7, 9}, 3, 1, 1}, lanes);
    check({{1, 32, 8, 6}, {1, 32, 4, 3}, 2, 2, 0}, lanes);
    check({{2, 16, 9, 7}, {2, 16, 5, 4}, 3, 2, 1}, lanes);
    check({{1, 16, 6, 6}, {1, 16, 3, 3}, 3, 2, 0}, lanes);  // the last windows end outside
    check({{1, 24, 5, 5}, {1, 24, 2, 2}, 2, 3, 0}, lanes);
    check({{1, 8, 1, 1}, {1, 8, 1, 1}, 3, 1, 1}, lanes);
  }
}

}  // namespace
}  // namespace fleet
