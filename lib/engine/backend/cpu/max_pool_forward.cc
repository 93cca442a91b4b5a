#include "backend/cpu/max_pool_forward.h"

#include "backend/cpu/elementwise.h"

// Vectors stay inside always-inlined functions, so no ABI depends on them.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace fleet::cpu {
namespace {

struct PooledImage {
  Window window;
  int64_t planes, height, width, output_height, output_width;
};

// The positions of a window that are inside the image.
struct Inside {
  int64_t begin, end;
  Inside(int64_t start, int64_t kernel, int64_t size)
      : begin(std::max<int64_t>(-start, 0)), end(std::min(kernel, size - start)) {}
};

// Row `oh` of a plane's outputs, for blocks of kLanes channels.
template <int kLanes>
FLEET_SIMD void maxima_of_row(const PooledImage& p, const float* plane, int64_t oh, float* y,
                              uint8_t* mask) {
  using Values __attribute__((vector_size(kLanes * sizeof(float)))) = float;
  using Flags __attribute__((vector_size(kLanes * sizeof(int32_t)))) = int32_t;
  const int64_t top = oh * p.window.strides[0] - p.window.paddings[0];
  const Inside rows(top, p.window.kernel[0], p.height);
  for (int64_t ow = 0; ow < p.output_width; ++ow) {
    const int64_t left = ow * p.window.strides[1] - p.window.paddings[1];
    const Inside columns(left, p.window.kernel[1], p.width);
    Values best = {};
    Flags place = {};
    bool first = true;
    for (int64_t kh = rows.begin; kh < rows.end; ++kh) {
      const float* row = plane + ((top + kh) * p.width + left) * kLanes;
      for (int64_t kw = columns.begin; kw < columns.end; ++kw, first = false) {
        Values value;
        std::memcpy(&value, row + kw * kLanes, sizeof value);
        const auto at = static_cast<int32_t>(kh * p.window.kernel[1] + kw);
        const Flags taken = first ? Flags{} == 0 : (value > best) | (value != value);
        best = taken ? value : best;
        place = taken ? Flags{} + at : place;
      }
    }
    std::memcpy(y + ow * kLanes, &best, sizeof best);
    // No __builtin_convertvector(): GCC 12 takes a vector whose size depends on a template for a
    // number.
    int32_t places[kLanes];
    std::memcpy(places, &place, sizeof places);
    for (int i = 0; i < kLanes; ++i) mask[ow * kLanes + i] = static_cast<uint8_t>(places[i]);
  }
}

template <int kLanes>
std::unique_ptr<Kernel> make_forward_of(const PooledImage& p, const float* x, float* y,
                                        uint8_t* mask) {
  return make_kernel([=](Stream&) {
    const int64_t outputs = p.output_width * kLanes;
    const bool parallel = p.planes * p.output_height * outputs >= kParallelElements;
#pragma omp parallel for collapse(2) if (parallel)
    for (int64_t plane = 0; plane < p.planes; ++plane) {
      for (int64_t oh = 0; oh < p.output_height; ++oh) {
        const int64_t at = (plane * p.output_height + oh) * outputs;
        maxima_of_row<kLanes>(p, x + plane * p.height * p.width * kLanes, oh, y + at, mask + at);
      }
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> MaxPoolForward::make(const Window& window, const Argument& x,
                                             const Argument& y, uint8_t* mask) {
  const int64_t lanes = x.layout.inner()[0].size;
  const PooledImage image{.window = window,
                          .planes = x.shape[0] * x.layout.padded()[1] / lanes,
                          .height = x.shape[2],
                          .width = x.shape[3],
                          .output_height = y.shape[2],
                          .output_width = y.shape[3]};
  return lanes == 8 ? make_forward_of<8>(image, x.as<float>(), y.as<float>(), mask)
                    : make_forward_of<16>(image, x.as<float>(), y.as<float>(), mask);
}

}  // namespace fleet::cpu
