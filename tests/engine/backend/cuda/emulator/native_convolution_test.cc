#include "backend/cuda/native_convolution.h"

#include <gtest/gtest.h>

#include <random>

#include "backend/cuda/depthwise.h"
#include "backend/cuda/pooling.h"
#include "tensor/float16.h"

namespace fleet::cuda {
namespace {

// Memory of one of the kernels' types, seen as numbers.
class Memory {
 public:
  Memory(DType dtype, int64_t count) : dtype_(dtype), raw_(count * size_of(dtype) + 16) {
    const auto misplaced = reinterpret_cast<uintptr_t>(raw_.data()) % 16;
    data_ = raw_.data() + (16 - misplaced) % 16;
    for (int64_t i = 0; i < count; ++i) set(i, 77);  // what must be overwritten
  }
  void set(int64_t i, double value) {
    with_type([&](auto* data) { data[i] = std::decay_t<decltype(*data)>(float(value)); });
  }
  double at(int64_t i) const {
    double value = 0;
    with_type([&](auto* data) { value = static_cast<float>(data[i]); });
    return value;
  }
  void* data() const { return data_; }

 private:
  template <typename Body>
  void with_type(Body body) const {
    if (dtype_ == DType::kFloat32) return body(reinterpret_cast<float*>(data_));
    if (dtype_ == DType::kFloat16) return body(reinterpret_cast<Float16*>(data_));
    body(reinterpret_cast<BFloat16*>(data_));
  }
  DType dtype_;
  std::vector<char> raw_;
  char* data_;
};

double tolerance(DType dtype) { return dtype == DType::kFloat32 ? 2e-5 : 0.03; }

// A convolution with its tensors, random where they are read; padding is zero.
struct Case {
  Convolution c;
  Memory x, y, weight, bias;

  explicit Case(const Convolution& convolution)
      : c(convolution),
        x(c.dtype, c.batch * c.in[0] * c.in[1] * c.in_pixel),
        y(c.dtype, c.batch * c.out[0] * c.out[1] * c.out_pixel),
        weight(c.dtype, weights()),
        bias(c.dtype, c.channels + c.filters) {}

  int64_t taps() const { return c.window.kernel[0] * c.window.kernel[1]; }
  int64_t weights() const { return c.filters * taps() * c.channels / c.groups; }
  void fill(Memory& memory, int64_t pixels, int64_t channels, int64_t pixel) {
    for (int64_t i = 0; i < pixels * pixel; ++i) {
      memory.set(i, i % pixel < channels ? draw_(random_) : 0);
    }
  }
  void fill_x() { fill(x, c.batch * c.in[0] * c.in[1], c.channels, c.in_pixel); }
  void fill_y() { fill(y, c.batch * c.out[0] * c.out[1], c.filters, c.out_pixel); }
  void fill_weight() { fill(weight, weights(), 1, 1); }
  void fill_bias() { fill(bias, c.channels + c.filters, 1, 1); }

  // body(x index, y index, weight index) of every product.
  template <typename Body>
  void for_products(Body body) const {
    const int64_t own = c.channels / c.groups, filters = c.filters / c.groups;
    for (int64_t n = 0; n < c.batch; ++n) {
      for (int64_t row = 0; row < c.out[0]; ++row) {
        for (int64_t column = 0; column < c.out[1]; ++column) {
          for (int64_t tap = 0; tap < taps(); ++tap) {
            const int64_t h = row * c.window.strides[0] - c.window.paddings[0] +
                              tap / c.window.kernel[1] * c.window.dilations[0];
            const int64_t w = column * c.window.strides[1] - c.window.paddings[1] +
                              tap % c.window.kernel[1] * c.window.dilations[1];
            if (h < 0 || w < 0 || h >= c.in[0] || w >= c.in[1]) continue;
            for (int64_t f = 0; f < c.filters; ++f) {
              for (int64_t i = 0; i < own; ++i) {
                body(((n * c.in[0] + h) * c.in[1] + w) * c.in_pixel + f / filters * own + i,
                     ((n * c.out[0] + row) * c.out[1] + column) * c.out_pixel + f,
                     (f * taps() + tap) * own + i);
              }
            }
          }
        }
      }
    }
  }

 private:
  std::mt19937 random_{3};
  std::uniform_real_distribution<double> draw_{-1, 1};
};

void expect_near(const Memory& got, const std::vector<double>& want, DType dtype) {
  double scale = 1e-3;
  for (double value : want) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got.at(static_cast<int64_t>(i)), want[i], scale * tolerance(dtype)) << i;
  }
}

Convolution convolution(DType dtype, int64_t channels, int64_t filters, int64_t groups,
                        int64_t stored, int64_t kernel, int64_t stride, int64_t dilation) {
  Convolution c{.dtype = dtype,
                .batch = 2,
                .channels = channels,
                .filters = filters,
                .groups = groups,
                .in = {9, 7},
                .in_pixel = std::max(stored, channels),
                .out_pixel = std::max(stored, filters),
                .window = {.kernel = {kernel, kernel},
                           .strides = {stride, stride},
                           .paddings = {1, 1},
                           .dilations = {dilation, dilation}}};
  for (int d = 0; d < 2; ++d) c.out[d] = windows(c.window, d, c.in[d]);
  return c;
}

std::vector<Convolution> depthwise_cases() {
  std::vector<Convolution> all;
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    all.push_back(convolution(dtype, 24, 24, 24, 24, 3, 1, 1));
    all.push_back(convolution(dtype, 20, 20, 20, 24, 3, 2, 1));
    all.push_back(convolution(dtype, 5, 5, 5, 5, 2, 1, 2));
    all.push_back(convolution(dtype, 300, 300, 300, 304, 7, 3, 1));
  }
  return all;
}

// Those that have kernels with tiles in registers, also at edges: odd sizes, more padding than
// needed, channels that do not fill a block.
std::vector<Convolution> tile_cases() {
  std::vector<Convolution> all;
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t kernel : {3, 5, 7}) {
      for (const int64_t stride : {1, 2}) {
        for (const int64_t padding : {int64_t{0}, kernel / 2, kernel - 1}) {
          Convolution c = convolution(dtype, 18, 18, 18, 18, kernel, stride, 1);
          c.in[0] = 17;
          c.in[1] = 10;
          c.window.paddings[0] = padding;
          c.window.paddings[1] = padding / 2;
          for (int d = 0; d < 2; ++d) c.out[d] = windows(c.window, d, c.in[d]);
          all.push_back(c);
        }
      }
    }
  }
  return all;
}

TEST(OwnConvolution, TileCases_TakeTiles) {
  for (const Convolution& c : tile_cases()) EXPECT_TRUE(takes_depthwise_tiles(c));
  Convolution odd = convolution(DType::kFloat32, 5, 5, 5, 5, 3, 1, 1);
  EXPECT_FALSE(takes_depthwise_tiles(odd));
}

std::vector<Convolution> depthwise_and_tile_cases() {
  std::vector<Convolution> all = depthwise_cases();
  for (const Convolution& c : tile_cases()) all.push_back(c);
  return all;
}

TEST(OwnConvolution, DepthwiseForward_MatchesTheFormula) {
  for (const Convolution& convolution : depthwise_and_tile_cases()) {
    Case t(convolution);
    ASSERT_TRUE(is_depthwise(t.c));
    t.fill_x();
    t.fill_weight();
    t.fill_bias();
    const int64_t count = t.c.batch * t.c.out[0] * t.c.out[1] * t.c.out_pixel;
    std::vector<double> want(count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t f = i % t.c.out_pixel;
      if (f < t.c.filters) want[i] = t.bias.at(f);
    }
    t.for_products([&](int64_t x, int64_t y, int64_t w) { want[y] += t.x.at(x) * t.weight.at(w); });
    depthwise_forward(t.c, t.x.data(), t.weight.data(), t.bias.data(), t.y.data(), nullptr);
    expect_near(t.y, want, t.c.dtype);
  }
}

TEST(OwnConvolution, DepthwiseDataGradient_MatchesTheFormula) {
  for (const Convolution& convolution : depthwise_and_tile_cases()) {
    Case t(convolution);
    t.fill_y();
    t.fill_weight();
    std::vector<double> want(t.c.batch * t.c.in[0] * t.c.in[1] * t.c.in_pixel);
    t.for_products([&](int64_t x, int64_t y, int64_t w) { want[x] += t.y.at(y) * t.weight.at(w); });
    depthwise_data_grad(t.c, t.weight.data(), t.y.data(), nullptr, t.x.data(), nullptr);
    expect_near(t.x, want, t.c.dtype);
  }
}

TEST(OwnConvolution, DepthwiseWeightGradient_MatchesTheFormula) {
  for (const Convolution& convolution : depthwise_and_tile_cases()) {
    Case t(convolution);
    t.fill_x();
    t.fill_y();
    std::vector<double> weights(t.weights()), biases(t.c.filters);
    t.for_products([&](int64_t x, int64_t y, int64_t w) { weights[w] += t.x.at(x) * t.y.at(y); });
    for (int64_t i = 0; i < t.c.batch * t.c.out[0] * t.c.out[1]; ++i) {
      for (int64_t f = 0; f < t.c.filters; ++f) biases[f] += t.y.at(i * t.c.out_pixel + f);
    }
    std::vector<char> workspace(depthwise_weight_grad_workspace(t.c));
    depthwise_weight_grad(t.c, t.x.data(), t.y.data(), t.weight.data(), t.bias.data(),
                          workspace.data(), nullptr);
    expect_near(t.weight, weights, t.c.dtype);
    expect_near(t.bias, biases, t.c.dtype);
  }
}

// x passes through relu on the way in; dx is masked by the x that lies where it is written.
TEST(OwnConvolution, DepthwiseWithRelu_MatchesTheFormula) {
  for (const Convolution& convolution : depthwise_cases()) {
    Case t(convolution);
    t.c.relu = true;
    t.fill_x();
    t.fill_y();
    t.fill_weight();
    const auto relu = [](double x) { return x > 0 ? x : 0; };
    std::vector<double> y(t.c.batch * t.c.out[0] * t.c.out[1] * t.c.out_pixel);
    std::vector<double> dx(t.c.batch * t.c.in[0] * t.c.in[1] * t.c.in_pixel), dw(t.weights());
    t.for_products([&](int64_t x, int64_t y_at, int64_t w) {
      y[y_at] += relu(t.x.at(x)) * t.weight.at(w);
      dw[w] += relu(t.x.at(x)) * t.y.at(y_at);
      if (t.x.at(x) > 0) dx[x] += t.y.at(y_at) * t.weight.at(w);
    });
    std::vector<char> workspace(depthwise_weight_grad_workspace(t.c));
    Memory got_dx(t.c.dtype, static_cast<int64_t>(dx.size())), got_dw(t.c.dtype, t.weights());
    depthwise_data_grad(t.c, t.weight.data(), t.y.data(), t.x.data(), got_dx.data(), nullptr);
    expect_near(got_dx, dx, t.c.dtype);
    depthwise_weight_grad(t.c, t.x.data(), t.y.data(), got_dw.data(), nullptr, workspace.data(),
                          nullptr);
    expect_near(got_dw, dw, t.c.dtype);
    depthwise_forward(t.c, t.x.data(), t.weight.data(), nullptr, t.y.data(), nullptr);
    expect_near(t.y, y, t.c.dtype);
  }
}

TEST(OwnConvolution, TransposedForward_MatchesTheFormula) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const Convolution& convolution :
         {convolution(dtype, 16, 8, 1, 16, 3, 2, 1), convolution(dtype, 3, 6, 3, 8, 2, 1, 1),
          convolution(dtype, 5, 4, 1, 8, 4, 2, 1)}) {
      Case t(convolution);
      t.fill_y();
      t.fill_weight();
      t.fill_bias();
      const int64_t count = t.c.batch * t.c.in[0] * t.c.in[1] * t.c.in_pixel;
      std::vector<double> want(count);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t c = i % t.c.in_pixel;
        if (c < t.c.channels) want[i] = t.bias.at(c);
      }
      t.for_products(
          [&](int64_t x, int64_t y, int64_t w) { want[x] += t.y.at(y) * t.weight.at(w); });
      transposed_forward(t.c, t.y.data(), t.weight.data(), t.bias.data(), t.x.data(), nullptr);
      expect_near(t.x, want, dtype);
    }
  }
}

TEST(OwnPooling, GlobalAverageAndItsGradient_MatchTheFormula) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t channels : {5, 40, 304}) {
      const GlobalPooling p{.dtype = dtype, .batch = 3, .pixels = 49, .channels = channels};
      Memory x(dtype, p.batch * p.pixels * channels), y(dtype, p.batch * channels);
      std::mt19937 random{5};
      std::uniform_real_distribution<double> draw{-1, 1};
      for (int64_t i = 0; i < p.batch * p.pixels * channels; ++i) x.set(i, draw(random));
      std::vector<double> means(p.batch * channels), spread(p.batch * p.pixels * channels);
      for (size_t i = 0; i < spread.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i);
        means[at / channels / p.pixels * channels + at % channels] += x.at(at) / 49;
      }
      global_average(p, x.data(), y.data(), nullptr);
      expect_near(y, means, dtype);
      for (size_t i = 0; i < spread.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i);
        spread[i] = y.at(at / channels / p.pixels * channels + at % channels) / 49;
      }
      global_average_grad(p, y.data(), x.data(), nullptr);
      expect_near(x, spread, dtype);
    }
  }
}

}  // namespace
}  // namespace fleet::cuda
