#include <string>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

// Ids of either type.
struct EmbeddingIds {
  const void* data;
  DType dtype;
  int64_t count, rows;  // number of ids; rows of the weight

  int64_t at(int64_t i) const {
    return dtype == DType::kInt32 ? static_cast<const int32_t*>(data)[i]
                                  : static_cast<const int64_t*>(data)[i];
  }
  // kUsage if an id is not a row of the weight.
  void check() const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = at(i);
      if (id >= 0 && id < rows) continue;
      throw Error(ErrorCode::kUsage,
                  "id " + std::to_string(id) + " at position " + std::to_string(i) +
                      " of the batch is not one of the " + std::to_string(rows) +
                      " rows of the weight",
                  "embedding", "check the ids of the data and the vocabulary of the model");
    }
  }
};

constexpr int64_t kEmbeddingColumns = 256;  // columns of a row that one thread sums at a time

// The ids' positions, grouped by id and in order within a group: a counting sort.
struct SortedIds {
  int32_t *starts, *positions, *used;  // [rows + 1], [count], [min(count, rows)]

  SortedIds(void* workspace, int64_t count, int64_t rows)
      : starts(static_cast<int32_t*>(workspace)),
        positions(starts + rows + 1),
        used(positions + count) {}
  static size_t bytes(int64_t count, int64_t rows) {
    return static_cast<size_t>(rows + 1 + count + std::min(count, rows)) * sizeof(int32_t);
  }

  // Returns the number of ids that occur, which are in `used`, in increasing order.
  int64_t sort(const EmbeddingIds& ids) const {
    std::fill_n(starts, ids.rows + 1, 0);
    for (int64_t i = 0; i < ids.count; ++i) ++starts[ids.at(i) + 1];
    int64_t count = 0;
    for (int64_t row = 0; row < ids.rows; ++row) {
      if (starts[row + 1] > 0) used[count++] = static_cast<int32_t>(row);
      starts[row + 1] += starts[row];
    }
    for (int64_t i = 0; i < ids.count; ++i) {
      positions[starts[ids.at(i)]++] = static_cast<int32_t>(i);
    }
    // Each start has moved to its end, which is the next one's start.
    for (int64_t row = ids.rows; row > 0; --row) starts[row] = starts[row - 1];
    starts[0] = 0;
    return count;
  }
};

template <typename T>
FLEET_SIMD void add_columns(float* sum, const T* row, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<float>(row[i]);
}

template <typename T>
FLEET_SIMD void store_columns(const float* sum, T* row, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) row[i] = sum[i];
}

template <typename T>
struct EmbeddingGradient {
  EmbeddingIds ids;
  SortedIds sorted;
  const T* dy;
  T* dweight;
  int64_t size, padding;

  void sum_row(int64_t row, int64_t first) const {
    const int64_t columns = std::min(kEmbeddingColumns, size - first);
    float sum[kEmbeddingColumns] = {};
    if (row != padding) {
      for (int32_t k = sorted.starts[row]; k < sorted.starts[row + 1]; ++k) {
        add_columns(sum, dy + sorted.positions[k] * size + first, columns);
      }
    }
    store_columns(sum, dweight + row * size + first, columns);
  }

  void run() const {
    ids.check();
    const int64_t used = sorted.sort(ids);
    const int64_t pieces = (size + kEmbeddingColumns - 1) / kEmbeddingColumns;
    const bool parallel = ids.rows * size >= cpu::kParallelElements;
#pragma omp parallel if (parallel)
    {
#pragma omp for schedule(static) nowait
      for (int64_t row = 0; row < ids.rows; ++row) {
        if (sorted.starts[row] == sorted.starts[row + 1]) {
          std::memset(static_cast<void*>(dweight + row * size), 0, size * sizeof(T));
        }
      }
#pragma omp for schedule(dynamic, 4)
      for (int64_t unit = 0; unit < used * pieces; ++unit) {
        sum_row(sorted.used[unit / pieces], unit % pieces * kEmbeddingColumns);
      }
    }
  }
};

}  // namespace

FLEET_KERNEL(cpu, embedding) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const Argument &given = context.inputs[0], &weight = context.inputs[1];
    const EmbeddingIds ids{given.data, given.dtype, given.shape.elements(), weight.shape[0]};
    const int64_t bytes = weight.shape[1] * static_cast<int64_t>(size_of(weight.dtype));
    const char* from = weight.as<const char>();
    char* to = context.outputs[0].as<char>();
    return make_kernel([=](Stream&) {
      ids.check();
      const bool parallel = ids.count * bytes >= cpu::kParallelElements * 4;
#pragma omp parallel for if (parallel)
      for (int64_t i = 0; i < ids.count; ++i) {
        std::memcpy(to + i * bytes, from + ids.at(i) * bytes, bytes);
      }
    });
  };
}

FLEET_KERNEL(cpu, embedding_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    query.workspace(
        SortedIds::bytes(query.input_var(0).shape.elements(), query.attributes().integer("rows")));
  };
  def.create = [](KernelContext& context) {
    const Argument &given = context.inputs[0], &dweight = context.outputs[0];
    const EmbeddingIds ids{given.data, given.dtype, given.shape.elements(), dweight.shape[0]};
    FLEET_CHECK(ids.count < INT32_MAX && ids.rows < INT32_MAX, "too many ids");
    const SortedIds sorted(context.workspace, ids.count, ids.rows);
    return cpu::with_loop_type(dweight.dtype, [&]<typename T>(T) {
      const EmbeddingGradient<T> gradient{.ids = ids,
                                          .sorted = sorted,
                                          .dy = context.inputs[1].as<const T>(),
                                          .dweight = dweight.as<T>(),
                                          .size = dweight.shape[1],
                                          .padding = context.attributes().integer("padding_idx")};
      return make_kernel([=](Stream&) { gradient.run(); });
    });
  };
}

}  // namespace fleet
