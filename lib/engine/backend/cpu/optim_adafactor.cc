#include <cmath>

#include "backend/cpu/elementwise.h"
#include "optim/adafactor_rule.h"

namespace fleet {
namespace {

using Rule = AdafactorRule<double>;

// The last two dimensions, `count` times.
struct Matrices {
  int64_t count, rows, columns;
  explicit Matrices(const Shape& shape) {
    rows = shape[shape.rank() - 2];
    columns = shape[shape.rank() - 1];
    count = shape.elements() / std::max<int64_t>(rows * columns, 1);
  }
};

struct Pointers {
  const float* gradient;
  float *step, *row, *column;
};

FLEET_SIMD double squares_of(const float* g, float scale, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float x = g[i] * scale;
    sum += static_cast<double>(x) * x;
  }
  return sum;
}

FLEET_SIMD void add_squares(const float* g, float scale, double* sums, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float x = g[i] * scale;
    sums[i] += static_cast<double>(x) * x;
  }
}

// Updates the means of a matrix's columns, a block at a time.
void update_columns(const Matrices& size, const float* g, float scale, float weight,
                    float* column) {
  constexpr int64_t kColumns = 64;
  const int64_t blocks = (size.columns + kColumns - 1) / kColumns;
#pragma omp parallel for if (size.rows * size.columns >= cpu::kParallelElements)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = block * kColumns, count = std::min(kColumns, size.columns - begin);
    double sums[kColumns] = {};
    for (int64_t r = 0; r < size.rows; ++r) {
      add_squares(g + r * size.columns + begin, scale, sums, count);
    }
    for (int64_t c = 0; c < count; ++c) {
      const auto mean = static_cast<float>(sums[c] / static_cast<double>(size.rows));
      column[begin + c] = Rule::lerp(column[begin + c], mean, weight);
    }
  }
}

// The directions of a row, and the sum of their squares. share: the row's of the variance.
FLEET_SIMD double directions_of_row(Rule rule, const float* g, float scale, float share,
                                    const float* column, float* step, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float x = rule.direction(g[i] * scale, share * column[i]);
    step[i] = x;
    sum += static_cast<double>(x) * x;
  }
  return sum;
}

FLEET_SIMD double directions_of_vector(Rule rule, const float* g, float scale, float weight,
                                       float* variance, float* step, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float x = g[i] * scale;
    variance[i] = Rule::lerp(variance[i], x * x, weight);
    const float direction = rule.direction(x, variance[i]);
    step[i] = direction;
    sum += static_cast<double>(direction) * direction;
  }
  return sum;
}

// The directions of one matrix; sums: of the squares of each row.
void process_matrix(const Rule& rule, const Matrices& size, const Pointers& at, float scale,
                    float weight, double* sums) {
  const auto columns = static_cast<double>(size.columns);
  double total = 0;
#pragma omp parallel for if (size.rows * size.columns >= cpu::kParallelElements)
  for (int64_t r = 0; r < size.rows; ++r) {
    const double squares = squares_of(at.gradient + r * size.columns, scale, size.columns);
    at.row[r] = Rule::lerp(at.row[r], static_cast<float>(squares / columns), weight);
  }
  for (int64_t r = 0; r < size.rows; ++r) total += at.row[r];
  update_columns(size, at.gradient, scale, weight, at.column);
  const double mean = std::max(total / static_cast<double>(size.rows), rule.epsilon1);
#pragma omp parallel for if (size.rows * size.columns >= cpu::kParallelElements)
  for (int64_t r = 0; r < size.rows; ++r) {
    const auto share = static_cast<float>(at.row[r] / mean);
    sums[r] = directions_of_row(rule, at.gradient + r * size.columns, scale, share, at.column,
                                at.step + r * size.columns, size.columns);
  }
}

void process_vector(const Rule& rule, int64_t count, const Pointers& at, float scale, float weight,
                    double* sums) {
  constexpr int64_t kPart = cpu::kReduceElements;
#pragma omp parallel for if (count >= 2 * kPart)
  for (int64_t begin = 0; begin < count; begin += kPart) {
    sums[begin / kPart] =
        directions_of_vector(rule, at.gradient + begin, scale, weight, at.row + begin,
                             at.step + begin, std::min(kPart, count - begin));
  }
}

// Matrices of few elements, such as the windows of a convolution, are computed side by side:
// element e of matrix m of such a block is at [e * kLanes + m].
constexpr int64_t kLanes = 16, kSmallMatrix = 64;

bool is_small(const Matrices& size) {
  return size.rows * size.columns <= kSmallMatrix && size.count >= kLanes;
}

FLEET_INLINE void load_lanes(const float* from, int64_t lanes, int64_t each, float* to) {
  for (int64_t m = 0; m < lanes; ++m) {
    for (int64_t e = 0; e < each; ++e) to[e * kLanes + m] = from[m * each + e];
  }
}
FLEET_INLINE void store_lanes(const float* from, int64_t lanes, int64_t each, float* to) {
  for (int64_t m = 0; m < lanes; ++m) {
    for (int64_t e = 0; e < each; ++e) to[m * each + e] = from[e * kLanes + m];
  }
}

// state: means so far, of kLanes matrices; sums: of the squares of `count` elements.
FLEET_INLINE void update_means(float* state, const double* sums, int64_t count, float weight) {
#pragma omp simd
  for (int64_t m = 0; m < kLanes; ++m) {
    const auto mean = static_cast<float>(sums[m] / static_cast<double>(count));
    state[m] = Rule::lerp(state[m], mean, weight);
  }
}

FLEET_INLINE void add_lane_squares(const float* g, double* rows, double* columns) {
#pragma omp simd
  for (int64_t m = 0; m < kLanes; ++m) {
    const double square = static_cast<double>(g[m]) * g[m];
    rows[m] += square;
    columns[m] += square;
  }
}

FLEET_INLINE void lane_directions(const Rule& rule, const float* share, const float* column,
                                  float* g, double* sums) {
#pragma omp simd
  for (int64_t m = 0; m < kLanes; ++m) {
    const float x = rule.direction(g[m], share[m] * column[m]);
    g[m] = x;
    sums[m] += static_cast<double>(x) * x;
  }
}

// The directions of up to kLanes matrices. Returns the sum of their squares.
FLEET_SIMD double process_block(Rule rule, Matrices size, Pointers at, int64_t lanes, float scale,
                                float weight) {
  const int64_t each = size.rows * size.columns;
  alignas(64) float g[kSmallMatrix * kLanes], row[kSmallMatrix * kLanes],
      column[kSmallMatrix * kLanes];
  alignas(64) double columns[kSmallMatrix * kLanes];
  if (lanes < kLanes) {
    for (float* values : {g, row, column}) std::fill_n(values, each * kLanes, 0.0f);
  }
  std::fill_n(columns, size.columns * kLanes, 0.0);
  load_lanes(at.gradient, lanes, each, g);
  load_lanes(at.row, lanes, size.rows, row);
  load_lanes(at.column, lanes, size.columns, column);
#pragma omp simd
  for (int64_t i = 0; i < each * kLanes; ++i) g[i] *= scale;
  alignas(64) double total[kLanes] = {};
  for (int64_t r = 0; r < size.rows; ++r) {
    alignas(64) double sums[kLanes] = {};
    for (int64_t c = 0; c < size.columns; ++c) {
      add_lane_squares(g + (r * size.columns + c) * kLanes, sums, columns + c * kLanes);
    }
    update_means(row + r * kLanes, sums, size.columns, weight);
#pragma omp simd
    for (int64_t m = 0; m < kLanes; ++m) total[m] += row[r * kLanes + m];
  }
  for (int64_t c = 0; c < size.columns; ++c) {
    update_means(column + c * kLanes, columns + c * kLanes, size.rows, weight);
  }
  store_lanes(row, lanes, size.rows, at.row);
  store_lanes(column, lanes, size.columns, at.column);
  alignas(64) double squares[kLanes] = {};
  for (int64_t r = 0; r < size.rows; ++r) {
    alignas(64) float share[kLanes];
#pragma omp simd
    for (int64_t m = 0; m < kLanes; ++m) {
      const double mean = total[m] / static_cast<double>(size.rows);
      share[m] =
          static_cast<float>(row[r * kLanes + m] / (mean > rule.epsilon1 ? mean : rule.epsilon1));
    }
    for (int64_t c = 0; c < size.columns; ++c) {
      lane_directions(rule, share, column + c * kLanes, g + (r * size.columns + c) * kLanes,
                      squares);
    }
  }
  store_lanes(g, lanes, each, at.step);
  double sum = 0;
  for (int64_t m = 0; m < lanes; ++m) sum += squares[m];
  return sum;
}

Pointers at_matrix(const Matrices& size, const Pointers& at, int64_t matrix) {
  const int64_t each = size.rows * size.columns;
  return {at.gradient + matrix * each, at.step + matrix * each, at.row + matrix * size.rows,
          at.column + matrix * size.columns};
}

void process_matrices(const Rule& rule, const Matrices& size, const Pointers& at, float scale,
                      float weight, double* sums) {
  const bool parallel = size.count * size.rows * size.columns >= cpu::kParallelElements;
  if (is_small(size)) {
#pragma omp parallel for if (parallel)
    for (int64_t m = 0; m < size.count; m += kLanes) {
      sums[m / kLanes] = process_block(rule, size, at_matrix(size, at, m),
                                       std::min(kLanes, size.count - m), scale, weight);
    }
    return;
  }
#pragma omp parallel for if (parallel && size.count > 1)
  for (int64_t m = 0; m < size.count; ++m) {
    process_matrix(rule, size, at_matrix(size, at, m), scale, weight, sums + m * size.rows);
  }
}

int64_t sums_of(const Shape& shape, bool factored) {
  if (!factored) return (shape.elements() + cpu::kReduceElements - 1) / cpu::kReduceElements;
  const Matrices size(shape);
  return is_small(size) ? (size.count + kLanes - 1) / kLanes : size.count * size.rows;
}

std::unique_ptr<Kernel> create(KernelContext& context) {
  const Shape shape = context.inputs[kAdafactorGradient].shape;
  const bool factored = static_cast<bool>(context.inputs[kAdafactorColumn]);
  const Pointers at{.gradient = context.inputs[kAdafactorGradient].as<const float>(),
                    .step = context.outputs[0].as<float>(),
                    .row = context.outputs[1].as<float>(),
                    .column = factored ? context.outputs[2].as<float>() : nullptr};
  const float* scale_at = context.inputs[kAdafactorScale].as<const float>();
  const int32_t* found_inf = context.inputs[kAdafactorFoundInf].as<const int32_t>();
  const int64_t* step = context.inputs[kAdafactorStep].as<const int64_t>();
  const float* rate = context.inputs[kAdafactorRate].as<const float>();
  const float* squares = context.inputs[kAdafactorSquares].as<const float>();
  double* sums = static_cast<double*>(context.workspace);
  return make_kernel([=, rule = Rule(context.attributes())](Stream&) {
    if (found_inf && *found_inf != 0) return;
    const float scale = scale_at ? *scale_at : 1;
    const auto weight = static_cast<float>(rule.weight(*step));
    if (factored) {
      process_matrices(rule, Matrices(shape), at, scale, weight, sums);
    } else {
      process_vector(rule, shape.elements(), at, scale, weight, sums);
    }
    double total = 0;
    for (int64_t i = 0; i < sums_of(shape, factored); ++i) total += sums[i];
    const float factor = rule.factor(total, static_cast<double>(shape.elements()), squares,
                                     static_cast<double>(*rate), *step);
    cpu::parallel_ranges(shape.elements(), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) at.step[i] *= factor;
    });
  });
}

}  // namespace

FLEET_KERNEL(cpu, adafactor_step) {
  def.layouts = [](LayoutQuery& query) {
    const int64_t sums =
        sums_of(query.input_var(kAdafactorGradient).shape, query.has_input(kAdafactorColumn));
    query.workspace(static_cast<size_t>(sums) * sizeof(double));
  };
  def.create = create;
}

}  // namespace fleet
