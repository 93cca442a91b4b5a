#include "backend/cpu/max_pool_gradient.h"

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {
namespace {

// The windows that have a row or a column of the image at one of their positions: of outputs first
// .. first + count - 1, at the row or column `at` of the image and every stride-th after it.
struct Hits {
  int64_t first = 0, count = 0, at = 0;
};

Hits hits_of(const Window& window, int d, int64_t position, int64_t size, int64_t outputs) {
  const int64_t stride = window.strides[d], shift = window.paddings[d] - position;
  const int64_t first = shift > 0 ? (shift + stride - 1) / stride : 0;
  const int64_t end = std::min(outputs, (size - 1 + shift) / stride + 1);
  return {first, size - 1 + shift < 0 ? 0 : std::max<int64_t>(end - first, 0),
          first * stride - shift};
}

struct MaxPool {
  int64_t planes = 0, height = 0, width = 0, output_height = 0, output_width = 0;
  int64_t row_stride = 0, column_stride = 0, row_padding = 0, kernel_height = 0;
  std::vector<Hits> columns;  // by the column of a window
};

// Takes values, not memory: a conditional load would prevent vectorization.
FLEET_INLINE float if_equal(uint8_t place, uint8_t wanted, float value) {
  return place == wanted ? value : 0.0f;
}

// dx += dy where the window's maximum was at `place`: pixels of kLanes channels, those of dx apart
// by `stride`.
template <int kLanes>
FLEET_SIMD void add_hits(const float* dy, const uint8_t* mask, uint8_t place, int64_t pixels,
                         int64_t stride, float* dx) {
  if (stride == 1) {
#pragma omp simd
    for (int64_t i = 0; i < pixels * kLanes; ++i) dx[i] += if_equal(mask[i], place, dy[i]);
    return;
  }
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    const float* from = dy + pixel * kLanes;
    const uint8_t* places = mask + pixel * kLanes;
    float* to = dx + pixel * stride * kLanes;
#pragma omp simd
    for (int64_t i = 0; i < kLanes; ++i) to[i] += if_equal(places[i], place, from[i]);
  }
}

// Row h of dx: each gradient goes to the position that was the maximum of its window. Sums start
// with the last row of windows.
template <int kLanes>
void gradient_of_row(const MaxPool& pool, int64_t plane, int64_t h, const float* dy,
                     const uint8_t* mask, float* dx) {
  float* row = dx + (plane * pool.height + h) * pool.width * kLanes;
  std::memset(row, 0, static_cast<size_t>(pool.width) * kLanes * sizeof(float));
  const int64_t at = h + pool.row_padding;  // from the beginning of the first window
  const auto kernel_width = static_cast<int64_t>(pool.columns.size());
  const int64_t last = std::min(at / pool.row_stride, pool.output_height - 1);
  for (int64_t oh = last; oh >= 0 && at - oh * pool.row_stride < pool.kernel_height; --oh) {
    const int64_t row_place = (at - oh * pool.row_stride) * kernel_width;
    const int64_t begin = (plane * pool.output_height + oh) * pool.output_width;
    for (int64_t kw = 0; kw < kernel_width; ++kw) {
      const Hits& hits = pool.columns[kw];
      const int64_t from = (begin + hits.first) * kLanes;
      add_hits<kLanes>(dy + from, mask + from, static_cast<uint8_t>(row_place + kw), hits.count,
                       pool.column_stride, row + hits.at * kLanes);
    }
  }
}

template <int kLanes>
std::unique_ptr<Kernel> make_kernel_of(MaxPool pool, const Argument& dy, const Argument& mask,
                                       const Argument& dx) {
  return make_kernel([pool = std::move(pool), dy = dy.as<float>(), mask = mask.as<uint8_t>(),
                      dx = dx.as<float>()](Stream&) {
    const bool parallel = pool.planes * pool.height * pool.width * kLanes >= kParallelElements;
#pragma omp parallel for collapse(2) if (parallel)
    for (int64_t plane = 0; plane < pool.planes; ++plane) {
      for (int64_t h = 0; h < pool.height; ++h) {
        gradient_of_row<kLanes>(pool, plane, h, dy, mask, dx);
      }
    }
  });
}

// Channels of a block; 0 for other layouts.
int64_t lanes_of(const Argument& image) {
  const std::vector<Layout::Block>& inner = image.layout.inner();
  if (inner.size() != 1 || inner[0].axis != 1) return 0;
  const int64_t lanes = inner[0].size;
  if (lanes != 8 && lanes != 16) return 0;
  const Layout dense = layout_like(image.layout, image.shape);
  const int64_t width = image.shape[3], area = image.shape[2] * width;
  const std::vector<int64_t> wanted = {dense.padded()[1] * area, area * lanes, width * lanes,
                                       lanes};
  return image.layout == dense && image.layout.strides() == wanted ? lanes : 0;
}

}  // namespace

bool MaxPoolGradient::is_for(const Argument& dx, const dnnl::memory::desc& workspace) {
  return dx.dtype == DType::kFloat32 && lanes_of(dx) > 0 && workspace.get_size() > 0 &&
         workspace.data.data_type == dnnl_u8;
}

std::unique_ptr<Kernel> MaxPoolGradient::make(const Window& window, const Argument& dy,
                                              const Argument& mask, const Argument& dx) {
  const int64_t lanes = lanes_of(dx);
  MaxPool pool{.planes = dx.shape[0] * dx.layout.padded()[1] / lanes,
               .height = dx.shape[2],
               .width = dx.shape[3],
               .output_height = dy.shape[2],
               .output_width = dy.shape[3],
               .row_stride = window.strides[0],
               .column_stride = window.strides[1],
               .row_padding = window.paddings[0],
               .kernel_height = window.kernel[0],
               .columns = {}};
  for (int64_t kw = 0; kw < window.kernel[1]; ++kw) {
    pool.columns.push_back(hits_of(window, 1, kw, dx.shape[3], dy.shape[3]));
  }
  return lanes == 8 ? make_kernel_of<8>(std::move(pool), dy, mask, dx)
                    : make_kernel_of<16>(std::move(pool), dy, mask, dx);
}

}  // namespace fleet::cpu
