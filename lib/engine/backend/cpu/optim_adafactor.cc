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

// Returns the sum of squares of the directions. variance_of(i): of element i.
template <typename Variance>
double write_directions(const Rule& rule, const float* g, float scale, float* step, int64_t count,
                        Variance variance_of) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    step[i] = rule.direction(g[i] * scale, variance_of(i));
    sum += static_cast<double>(step[i]) * step[i];
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
    sums[r] =
        write_directions(rule, at.gradient + r * size.columns, scale, at.step + r * size.columns,
                         size.columns, [&](int64_t c) { return share * at.column[c]; });
  }
}

void process_vector(const Rule& rule, int64_t count, const Pointers& at, float scale, float weight,
                    double* sums) {
  constexpr int64_t kPart = cpu::kReduceElements;
#pragma omp parallel for if (count >= 2 * kPart)
  for (int64_t begin = 0; begin < count; begin += kPart) {
    float* variance = at.row + begin;
    const float* g = at.gradient + begin;
    sums[begin / kPart] = write_directions(
        rule, g, scale, at.step + begin, std::min(kPart, count - begin), [&](int64_t i) {
          const float x = g[i] * scale;
          return variance[i] = Rule::lerp(variance[i], x * x, weight);
        });
  }
}

int64_t sums_of(const Shape& shape, bool factored) {
  if (!factored) return (shape.elements() + cpu::kReduceElements - 1) / cpu::kReduceElements;
  const Matrices size(shape);
  return size.count * size.rows;
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
      const Matrices size(shape);
      const int64_t each = size.rows * size.columns;
#pragma omp parallel for if (size.count > 1 && shape.elements() >= cpu::kParallelElements)
      for (int64_t m = 0; m < size.count; ++m) {
        process_matrix(rule, size,
                       {at.gradient + m * each, at.step + m * each, at.row + m * size.rows,
                        at.column + m * size.columns},
                       scale, weight, sums + m * size.rows);
      }
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
