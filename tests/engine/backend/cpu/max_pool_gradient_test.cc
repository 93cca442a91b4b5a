#include "backend/cpu/max_pool_gradient.h"

#include <gtest/gtest.h>

#include <random>

#include "tensor/host.h"
#include "tests/engine/ops/image_layouts.h"

namespace fleet {
namespace {

struct MaxPoolCase {
  Shape x, y;
  int64_t kernel, stride, padding;
};

// Every position of a window inside the image is the maximum of some.
uint8_t position(const MaxPoolCase& c, std::mt19937& random, int64_t oh, int64_t ow) {
  for (;;) {
    const int64_t kh = random() % c.kernel, kw = random() % c.kernel;
    const int64_t h = oh * c.stride - c.padding + kh, w = ow * c.stride - c.padding + kw;
    if (h < 0 || w < 0 || h >= c.x[2] || w >= c.x[3]) continue;
    return static_cast<uint8_t>(kh * c.kernel + kw);
  }
}

// Of gradients of whole numbers, so that sums are exact.
void check(const MaxPoolCase& c, int64_t lanes) {
  SCOPED_TRACE(c.x.text() + " in blocks of " + std::to_string(lanes));
  const Layout x_layout = blocked_channels(c.x, lanes), y_layout = blocked_channels(c.y, lanes);
  std::vector<float> dx(x_layout.elements(), -1), dy(y_layout.elements());
  std::vector<uint8_t> mask(y_layout.elements());
  std::vector<double> wanted(x_layout.elements());
  std::mt19937 random(3);
  const int64_t planes = c.x[0] * x_layout.padded()[1] / lanes;
  for (int64_t i = 0; i < y_layout.elements(); ++i) {
    const int64_t lane = i % lanes, ow = i / lanes % c.y[3], oh = i / lanes / c.y[3] % c.y[2];
    const int64_t plane = i / lanes / c.y[3] / c.y[2];
    ASSERT_LT(plane, planes);
    dy[i] = static_cast<float>(random() % 100);
    mask[i] = position(c, random, oh, ow);
    const int64_t h = oh * c.stride - c.padding + mask[i] / c.kernel;
    const int64_t w = ow * c.stride - c.padding + mask[i] % c.kernel;
    wanted[((plane * c.x[2] + h) * c.x[3] + w) * lanes + lane] += dy[i];
  }
  const Window window{{c.kernel, c.kernel}, {c.stride, c.stride}, {c.padding, c.padding}, {1, 1}};
  const auto argument = [](auto& values, const Shape& shape, const Layout& layout) {
    return Argument{.data = values.data(), .shape = shape, .layout = layout};
  };
  HostDevice device;
  const auto stream = device.make_stream("");
  cpu::MaxPoolGradient::make(window, argument(dy, c.y, y_layout), argument(mask, c.y, y_layout),
                             argument(dx, c.x, x_layout))
      ->run(*stream);
  for (size_t i = 0; i < dx.size(); ++i) ASSERT_EQ(dx[i], wanted[i]) << "element " << i;
}

TEST(MaxPoolGradient, Blocks_MatchReference) {
  for (const int64_t lanes : {8, 16}) {
    check({{2, 16, 7, 9}, {2, 16, 7, 9}, 3, 1, 1}, lanes);
    check({{1, 32, 8, 6}, {1, 32, 4, 3}, 2, 2, 0}, lanes);
    check({{2, 16, 9, 7}, {2, 16, 5, 4}, 3, 2, 1}, lanes);
    check({{1, 16, 6, 6}, {1, 16, 3, 3}, 3, 2, 0}, lanes);  // the last windows end outside
    check({{1, 24, 5, 5}, {1, 24, 2, 2}, 2, 3, 0}, lanes);  // pixels between windows: zero
    check({{1, 8, 1, 1}, {1, 8, 1, 1}, 3, 1, 1}, lanes);
  }
}

TEST(MaxPoolGradient, OtherLayoutsAndTypes_AreNotItsOwn) {
  const Shape x{1, 16, 4, 4};
  const auto positions = [&](dnnl::memory::data_type type) {
    return dnnl::memory::desc({1, 16, 4, 4}, type, dnnl::memory::format_tag::nchw);
  };
  const auto is_for = [&](DType dtype, const Layout& layout, dnnl::memory::data_type type) {
    return cpu::MaxPoolGradient::is_for({.dtype = dtype, .shape = x, .layout = layout},
                                        positions(type));
  };
  using Type = dnnl::memory::data_type;
  EXPECT_TRUE(is_for(DType::kFloat32, blocked8(x), Type::u8));
  EXPECT_FALSE(is_for(DType::kFloat32, blocked8(x), Type::s32));  // a large window
  EXPECT_FALSE(is_for(DType::kBFloat16, blocked16(x), Type::u8));
  EXPECT_FALSE(is_for(DType::kFloat32, Layout::plain(x), Type::u8));
  EXPECT_FALSE(is_for(DType::kFloat32, Layout::channels_last(x), Type::u8));
}

}  // namespace
}  // namespace fleet
