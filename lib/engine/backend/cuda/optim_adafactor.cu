// adafactor_step in up to six launches: the means of rows and columns, the mean of the row means,
// directions with the squares of each row, the total, and the factor. A vector is cut into rows.
#include <algorithm>

#include "backend/cuda/rows.h"
#include "exec/kernel.h"
#include "optim/adafactor_rule.h"

namespace fleet {
namespace {

using Rule = AdafactorRule<float>;

// The last two dimensions, `count` times; a vector: rows of kShortRow, the last one shorter.
struct Matrices {
  int64_t count, rows, columns, elements;
  bool factored;
  Matrices(const Shape& shape, bool factors) : elements(shape.elements()), factored(factors) {
    columns = factored ? shape[shape.rank() - 1] : cuda::kShortRow;
    rows = factored ? shape[shape.rank() - 2] : (elements + columns - 1) / columns;
    count = factored ? elements / std::max<int64_t>(rows * columns, 1) : 1;
  }
  int64_t all_rows() const { return count * rows; }
};

// Device memory, and the numbers of the operation.
struct Step {
  const float* gradient;
  const float* scale_at;
  const int32_t* found_inf;
  const int64_t* number;
  const float *rate, *parameter_squares;
  float *step, *row, *column;
  float *row_squares, *means, *factor;  // workspace: by row, by matrix, one
  Matrices size;
  Rule rule;

  __device__ bool skipped() const { return found_inf && *found_inf != 0; }
  __device__ float at(int64_t i) const { return gradient[i] * (scale_at ? *scale_at : 1.0f); }
};

template <int threads>
__device__ int width_of(cuda::RowThreads<threads>) {
  return threads;
}

struct UpdateRow : Step {
  template <typename Threads>
  __device__ void operator()(Threads, int64_t r) const {
    if (skipped()) return;
    float sum = 0;
    for (int64_t c = Threads::first(); c < size.columns; c += width_of(Threads())) {
      const float g = at(r * size.columns + c);
      sum += g * g;
    }
    const float mean = Threads::sum(sum) / static_cast<float>(size.columns);
    if (Threads::first() == 0) row[r] = Rule::lerp(row[r], mean, rule.weight(*number));
  }
};

struct MeanOfRows : Step {
  template <typename Threads>
  __device__ void operator()(Threads, int64_t matrix) const {
    if (skipped()) return;
    float sum = 0;
    for (int64_t r = Threads::first(); r < size.rows; r += width_of(Threads())) {
      sum += row[matrix * size.rows + r];
    }
    const float mean = Threads::sum(sum) / static_cast<float>(size.rows);
    if (Threads::first() == 0) means[matrix] = mean > rule.epsilon1 ? mean : rule.epsilon1;
  }
};

struct WriteDirections : Step {
  template <typename Threads>
  __device__ void operator()(Threads, int64_t r) const {
    if (skipped()) return;
    const float share = size.factored ? row[r] / means[r / size.rows] : 0;
    const float* columns = column + r / size.rows * size.columns;
    const float weight = rule.weight(*number);
    float sum = 0;
    for (int64_t c = Threads::first(); c < size.columns; c += width_of(Threads())) {
      const int64_t i = r * size.columns + c;
      if (i >= size.elements) break;
      const float g = at(i);
      float variance;
      if (size.factored) {
        variance = share * columns[c];
      } else {
        variance = row[i] = Rule::lerp(row[i], g * g, weight);
      }
      step[i] = rule.direction(g, variance);
      sum += step[i] * step[i];
    }
    sum = Threads::sum(sum);
    if (Threads::first() == 0) row_squares[r] = sum;
  }
};

// One thread per column.
__global__ void update_columns(Step at) {
  const int64_t i = cuda::thread_index();
  if (at.skipped() || i >= at.size.count * at.size.columns) return;
  const int64_t matrix = i / at.size.columns, c = i % at.size.columns;
  float sum = 0;
  for (int64_t r = 0; r < at.size.rows; ++r) {
    const float g = at.at((matrix * at.size.rows + r) * at.size.columns + c);
    sum += g * g;
  }
  const float mean = sum / static_cast<float>(at.size.rows);
  at.column[i] = Rule::lerp(at.column[i], mean, at.rule.weight(*at.number));
}

__global__ void decide_factor(Step at, int64_t rows) {
  if (at.skipped()) return;
  float sum = 0;
  for (int64_t r = threadIdx.x; r < rows; r += cuda::kBlock) sum += at.row_squares[r];
  sum = cuda::block_sum<cuda::kBlock>(sum);
  if (threadIdx.x != 0) return;
  *at.factor = at.rule.factor(sum, static_cast<float>(at.size.elements), at.parameter_squares,
                              *at.rate, *at.number);
}

__global__ void scale_step(Step at) {
  const int64_t i = cuda::thread_index();
  if (!at.skipped() && i < at.size.elements) at.step[i] *= *at.factor;
}

std::unique_ptr<Kernel> create(KernelContext& context) {
  const auto input = [&](int i) { return context.inputs[i].as<const float>(); };
  const bool factored = static_cast<bool>(context.inputs[kAdafactorColumn]);
  const Matrices size(context.inputs[kAdafactorGradient].shape, factored);
  float* scratch = static_cast<float*>(context.workspace);
  const Step step{.gradient = input(kAdafactorGradient),
                  .scale_at = input(kAdafactorScale),
                  .found_inf = context.inputs[kAdafactorFoundInf].as<const int32_t>(),
                  .number = context.inputs[kAdafactorStep].as<const int64_t>(),
                  .rate = input(kAdafactorRate),
                  .parameter_squares = input(kAdafactorSquares),
                  .step = context.outputs[0].as<float>(),
                  .row = context.outputs[1].as<float>(),
                  .column = factored ? context.outputs[2].as<float>() : nullptr,
                  .row_squares = scratch + 1 + size.count,
                  .means = scratch + 1,
                  .factor = scratch,
                  .size = size,
                  .rule = Rule(context.attributes())};
  return make_kernel([=](Stream& on) {
    cudaStream_t stream = cuda::stream_of(on);
    if (size.factored) {
      cuda::launch_rows(stream, size.all_rows(), size.columns, UpdateRow{step});
      cuda::launch(update_columns, cuda::blocks_for(size.count * size.columns), cuda::kBlock, 0,
                   stream, step);
      cuda::launch_rows(stream, size.count, size.rows, MeanOfRows{step});
    }
    cuda::launch_rows(stream, size.all_rows(), size.columns, WriteDirections{step});
    cuda::launch(decide_factor, 1, cuda::kBlock, 0, stream, step, size.all_rows());
    cuda::launch(scale_step, cuda::blocks_for(size.elements), cuda::kBlock, 0, stream, step);
  });
}

}  // namespace

FLEET_KERNEL(cuda, adafactor_step) {
  def.layouts = [](LayoutQuery& query) {
    const Matrices size(query.input_var(kAdafactorGradient).shape,
                        query.has_input(kAdafactorColumn));
    query.workspace(static_cast<size_t>(1 + size.count + size.all_rows()) * sizeof(float));
  };
  def.create = create;
}

}  // namespace fleet
