#include <algorithm>

#include "backend/cpu/convolution.h"
#include "backend/cpu/elementwise.h"

namespace fleet::cpu {
namespace {

constexpr size_t kSliceBytes = 2 << 20;  // about what fits in a core's cache

// Whether the images of a batch are stored one after another.
bool is_cut_by_images(const Layout& layout) {
  const std::vector<int64_t>& strides = layout.strides();
  for (const Layout::Block& block : layout.inner()) {
    if (block.axis == 0) return false;
  }
  return *std::max_element(strides.begin(), strides.end()) == strides[0];
}

// The number of images per slice: a divisor of the batch.
int64_t images_of_a_slice(int64_t batch, size_t image_bytes) {
  int64_t images = std::clamp<int64_t>(static_cast<int64_t>(kSliceBytes / image_bytes), 1, batch);
  while (batch % images != 0) --images;
  return images;
}

Shape with_images(const Shape& shape, int64_t images) {
  Shape result = shape;
  result[0] = images;
  return result;
}

template <typename T>
FLEET_SIMD void relu(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = where_positive(x[i], x[i]);
}

template <typename T>
FLEET_SIMD void mask(const T* x, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = where_positive(x[i], dx[i]);
}

FLEET_SIMD void add(const float* x, float* sum, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

template <typename T>
FLEET_SIMD void copy(const float* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i];
}

// to[i] = function(from[i], to[i]) over a slice.
template <template <typename> typename Function>
void over(const Argument& from, void* to) {
  with_loop_type(from.dtype, [&]<typename T>(T) {
    const T* x = from.as<T>();
    T* y = static_cast<T*>(to);
    parallel_ranges(from.layout.elements(), [=](int64_t begin, int64_t end) {
      Function<T>()(x + begin, y + begin, end - begin);
    });
  });
}

template <typename T>
struct Relu {
  void operator()(const T* x, T* y, int64_t count) const { relu(x, y, count); }
};
template <typename T>
struct Mask {
  void operator()(const T* x, T* dx, int64_t count) const { mask(x, dx, count); }
};

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

char* behind(void* memory, size_t bytes) { return static_cast<char*>(memory) + bytes; }

void store(const float* values, const Argument& to) {
  with_loop_type(to.dtype, [&]<typename T>(T) { copy(values, to.as<T>(), to.layout.elements()); });
}

Argument at(void* data, DType dtype, const Shape& shape, const Layout& layout) {
  return {.data = data, .dtype = dtype, .shape = shape, .layout = layout};
}

}  // namespace

ReluDepthwise::ReluDepthwise(const Convolution& convolution, const Layout& x, const Layout& weight,
                             const Layout& y)
    : slice_(convolution), weight_layout_(weight) {
  const int64_t batch = convolution.x[0];
  int64_t images = batch;
  if (is_cut_by_images(x) && is_cut_by_images(y)) {
    images = images_of_a_slice(batch, x.elements() * size_of(convolution.type) / batch);
  }
  count_ = batch / images;
  slice_.x = with_images(convolution.x, images);
  slice_.y = with_images(convolution.y, images);
  x_layout_ = images == batch ? x : layout_like(x, slice_.x);
  y_layout_ = images == batch ? y : layout_like(y, slice_.y);
  if (slice_.direction != Convolution::kWeight) return;
  slice_.weight_type = DType::kFloat32;
  if (slice_.bias) slice_.bias = DType::kFloat32;
}

size_t ReluDepthwise::scratchpad_bytes() const {
  return aligned(convolution_workspace(slice_, {x_layout_, weight_layout_, y_layout_}));
}

size_t ReluDepthwise::image_bytes() const {
  return aligned(x_layout_.elements() * size_of(slice_.type));
}

size_t ReluDepthwise::workspace() const {
  const size_t images = slice_.direction == Convolution::kData ? 0 : image_bytes();
  if (slice_.direction != Convolution::kWeight) return scratchpad_bytes() + images;
  const size_t sums = aligned(weights() * sizeof(float)) + aligned(biases() * sizeof(float));
  return scratchpad_bytes() + images + 2 * sums;
}

Argument ReluDepthwise::slice_of(const Argument& whole, const Shape& shape, const Layout& layout,
                                 int64_t number) const {
  const size_t bytes = layout.elements() * size_of(whole.dtype);
  return at(behind(whole.data, number * bytes), whole.dtype, shape, layout);
}

std::unique_ptr<Kernel> ReluDepthwise::make_forward(const Argument& x, const Argument& weight,
                                                    const Argument& bias, const Argument& y,
                                                    void* workspace) const {
  struct Step {
    Argument x;
    std::shared_ptr<Kernel> product;
  };
  const Argument image = at(behind(workspace, scratchpad_bytes()), x.dtype, slice_.x, x_layout_);
  std::vector<Step> steps;
  for (int64_t i = 0; i < count_; ++i) {
    steps.push_back({slice_of(x, slice_.x, x_layout_, i),
                     make_convolution(slice_, image, weight, bias,
                                      slice_of(y, slice_.y, y_layout_, i), workspace)});
  }
  return make_kernel([steps, to = image.data](Stream& stream) {
    for (const Step& step : steps) {
      over<Relu>(step.x, to);
      step.product->run(stream);
    }
  });
}

std::unique_ptr<Kernel> ReluDepthwise::make_data(const Argument& weight, const Argument& dy,
                                                 const Argument& x, const Argument& dx,
                                                 void* workspace) const {
  struct Step {
    Argument x, dx;
    std::shared_ptr<Kernel> product;
  };
  std::vector<Step> steps;
  for (int64_t i = 0; i < count_; ++i) {
    const Argument gradient = slice_of(dx, slice_.x, x_layout_, i);
    steps.push_back({slice_of(x, slice_.x, x_layout_, i), gradient,
                     make_convolution(slice_, gradient, weight, {},
                                      slice_of(dy, slice_.y, y_layout_, i), workspace)});
  }
  return make_kernel([steps](Stream& stream) {
    for (const Step& step : steps) {
      step.product->run(stream);
      over<Mask>(step.x, step.dx.data);
    }
  });
}

std::unique_ptr<Kernel> ReluDepthwise::make_weight(const Argument& x, const Argument& dy,
                                                   const Argument& dweight, const Argument& dbias,
                                                   void* workspace) const {
  struct Step {
    Argument x;
    std::shared_ptr<Kernel> product;
  };
  char* next = behind(workspace, scratchpad_bytes());
  const Argument image = at(next, x.dtype, slice_.x, x_layout_);
  next += image_bytes();
  const auto take = [&next](int64_t count) {
    float* const taken = reinterpret_cast<float*>(next);
    next += aligned(count * sizeof(float));
    return taken;
  };
  float* const weight_sum = take(weights());
  float* const bias_sum = take(biases());
  float* const weight_part = take(weights());
  float* const bias_part = take(biases());
  std::vector<Step> steps;
  for (int64_t i = 0; i < count_; ++i) {
    const Argument weight =
        at(i == 0 ? weight_sum : weight_part, DType::kFloat32, slice_.weight, weight_layout_);
    const Argument bias =
        dbias ? at(i == 0 ? bias_sum : bias_part, DType::kFloat32, dbias.shape, dbias.layout)
              : Argument();
    steps.push_back({slice_of(x, slice_.x, x_layout_, i),
                     make_convolution(slice_, image, weight, bias,
                                      slice_of(dy, slice_.y, y_layout_, i), workspace)});
  }
  return make_kernel([=, to = image.data, count = weights(), channels = biases()](Stream& stream) {
    for (size_t i = 0; i < steps.size(); ++i) {
      over<Relu>(steps[i].x, to);
      steps[i].product->run(stream);
      if (i == 0) continue;
      add(weight_part, weight_sum, count);
      add(bias_part, bias_sum, channels);
    }
    store(weight_sum, dweight);
    if (dbias) store(bias_sum, dbias);
  });
}

}  // namespace fleet::cpu
