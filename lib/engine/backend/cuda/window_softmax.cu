#include <cmath>

#include "backend/cuda/rows.h"
#include "exec/kernel.h"
#include "ops/image_windows.h"

namespace fleet {
namespace {

// Rows of scores are [samples, heads, tokens]; samples are the windows of the batch.
struct WindowRows {
  ImageWindows windows;
  int64_t heads, tokens;
  float scale;
};

// y may equal the scores.
template <typename T>
struct WindowSoftmaxRow {
  WindowRows rows;
  const T* scores;
  const float* table;
  T* y;

  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const int64_t matrix = cuda::quotient(row, rows.tokens), query = row - matrix * rows.tokens;
    const int64_t sample = cuda::quotient(matrix, rows.heads), head = matrix - sample * rows.heads;
    const int64_t window = cuda::remainder_of(sample, rows.windows.count());
    const bool shifted = rows.windows.shifted();
    const int64_t own = shifted ? rows.windows.region(window, query) : 0;
    const T* from = scores + row * rows.tokens;
    const auto value = [&](int64_t key) {
      const float bias = table[rows.windows.offset(query, key) * rows.heads + head];
      const float mask = shifted && rows.windows.region(window, key) != own ? kOtherRegion : 0;
      return cuda::to_float(from[key]) * rows.scale + bias + mask;
    };
    float largest = cuda::Max::kIdentity;
    for (int64_t key = row_threads.first(); key < rows.tokens; key += threads) {
      largest = cuda::Max::of(largest, value(key));
    }
    largest = row_threads.max(largest);
    float sum = 0;
    for (int64_t key = row_threads.first(); key < rows.tokens; key += threads) {
      sum += expf(value(key) - largest);
    }
    const float factor = 1 / row_threads.sum(sum);
    for (int64_t key = row_threads.first(); key < rows.tokens; key += threads) {
      y[row * rows.tokens + key] = cuda::from_float<T>(expf(value(key) - largest) * factor);
    }
  }
};

// dots: of y and dy of each row.
template <typename T>
struct WindowDotRow {
  const T *y, *dy;
  float* dots;
  int64_t tokens;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    float dot = 0;
    for (int64_t key = row_threads.first(); key < tokens; key += threads) {
      dot += cuda::to_float(y[row * tokens + key]) * cuda::to_float(dy[row * tokens + key]);
    }
    dot = row_threads.sum(dot);
    if (row_threads.first() == 0) dots[row] = dot;
  }
};

// dscores, one element a thread; may equal dy.
template <typename T>
__global__ void window_scores_gradient(int64_t count, int64_t tokens, float scale, const T* y,
                                       const T* dy, const float* dots, T* dscores) {
  const int64_t at = cuda::thread_index();
  if (at >= count) return;
  const float ds =
      cuda::to_float(y[at]) * (cuda::to_float(dy[at]) - dots[cuda::quotient(at, tokens)]);
  dscores[at] = cuda::from_float<T>(ds * scale);
}

constexpr int64_t kSampleParts = 32;  // parts of the batch that are summed at the same time

// sums[part][element] = the sum of ds over the samples of the part: one element of [heads, tokens,
// tokens] a thread.
template <typename T>
__global__ void sum_windows(int64_t samples, int64_t elements, int64_t tokens, const T* y,
                            const T* dy, const float* dots, float* sums) {
  const int64_t at = cuda::thread_index();
  if (at >= elements) return;
  const int64_t rows = cuda::quotient(elements, tokens), row = cuda::quotient(at, tokens);
  const int64_t part = blockIdx.y;
  const int64_t begin = samples * part / kSampleParts, end = samples * (part + 1) / kSampleParts;
  float sum = 0;
  for (int64_t sample = begin; sample < end; ++sample) {
    const int64_t from = sample * elements + at;
    sum += cuda::to_float(y[from]) * (cuda::to_float(dy[from]) - dots[sample * rows + row]);
  }
  sums[part * elements + at] = sum;
}

// dtable: one element of [offsets, heads] a thread, which finds the pairs with its offset.
__global__ void sum_offsets(int64_t count, WindowRows rows, const float* sums, float* dtable) {
  const int64_t at = cuda::thread_index();
  if (at >= count) return;
  const int64_t offset = cuda::quotient(at, rows.heads), head = at - offset * rows.heads;
  const int64_t across = 2 * rows.windows.width - 1, row = cuda::quotient(offset, across);
  const int64_t down = row - (rows.windows.height - 1);
  const int64_t right = offset - row * across - (rows.windows.width - 1);
  const int64_t square = rows.tokens * rows.tokens;
  float sum = 0;
  for (int64_t key = 0; key < rows.tokens; ++key) {
    const int64_t key_row = cuda::quotient(key, rows.windows.width);
    const int64_t y = key_row + down, x = key - key_row * rows.windows.width + right;
    if (y < 0 || y >= rows.windows.height || x < 0 || x >= rows.windows.width) continue;
    const int64_t query = y * rows.windows.width + x;
    for (int64_t part = 0; part < kSampleParts; ++part) {
      sum += sums[(part * rows.heads + head) * square + query * rows.tokens + key];
    }
  }
  dtable[at] = sum;
}

WindowRows rows_of(const Attributes& attributes, const Shape& scores) {
  return {.windows = image_windows(attributes),
          .heads = scores[1],
          .tokens = scores[2],
          .scale = static_cast<float>(attributes.number("scale"))};
}

template <typename T>
std::unique_ptr<Kernel> make_window_gradient(KernelContext& context) {
  const Argument y = context.inputs[0], dy = context.inputs[2];
  const Argument dscores = context.outputs[0], dtable = context.outputs[1];
  const WindowRows rows = rows_of(context.attributes(), y.shape);
  const int64_t samples = y.shape[0], elements = rows.heads * rows.tokens * rows.tokens;
  float* dots = static_cast<float*>(context.workspace);
  float* sums = dots + samples * rows.heads * rows.tokens;
  return make_kernel([=](Stream& handle) {
    const cudaStream_t stream = cuda::stream_of(handle);
    cuda::launch_rows(stream, samples * rows.heads * rows.tokens, rows.tokens,
                      WindowDotRow<T>{y.as<const T>(), dy.as<const T>(), dots, rows.tokens});
    if (dtable) {
      cuda::launch(sum_windows<T>, dim3(cuda::blocks_for(elements), kSampleParts), cuda::kBlock, 0,
                   stream, samples, elements, rows.tokens, y.as<const T>(), dy.as<const T>(), dots,
                   sums);
      cuda::launch(sum_offsets, cuda::blocks_for(dtable.shape.elements()), cuda::kBlock, 0, stream,
                   dtable.shape.elements(), rows, sums, dtable.as<float>());
    }
    if (dscores) {
      const int64_t count = samples * elements;
      cuda::launch(window_scores_gradient<T>, cuda::blocks_for(count), cuda::kBlock, 0, stream,
                   count, rows.tokens, rows.scale, y.as<const T>(), dy.as<const T>(), dots,
                   dscores.as<T>());
    }
  });
}

}  // namespace

FLEET_KERNEL(cuda, window_softmax) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument scores = context.inputs[0], table = context.inputs[1], y = context.outputs[0];
    const WindowRows rows = rows_of(context.attributes(), scores.shape);
    return cuda::dispatch(y.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_rows(
            cuda::stream_of(stream), scores.shape.elements() / rows.tokens, rows.tokens,
            WindowSoftmaxRow<T>{rows, scores.as<const T>(), table.as<const float>(), y.as<T>()});
      });
    });
  };
}

FLEET_KERNEL(cuda, window_softmax_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Shape& y = query.input_var(0).shape;
    const int64_t dots = y.elements() / y[3], sums = kSampleParts * y.elements() / y[0];
    query.workspace(static_cast<size_t>(dots + sums) * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    return cuda::dispatch(context.inputs[0].dtype,
                          [&](auto type) { return make_window_gradient<decltype(type)>(context); });
  };
}

}  // namespace fleet
