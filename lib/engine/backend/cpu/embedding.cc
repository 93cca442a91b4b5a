#include <bit>
#include <string>
#include <utility>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

// Ids of either type: `count` of them, lists of `pool` ids each.
struct EmbeddingIds {
  const void* data;
  DType dtype;
  int64_t count, rows;  // number of ids; rows of the weight
  int64_t pool = 1;
  bool padded = false;  // -1 stands for no token

  int64_t at(int64_t i) const {
    return dtype == DType::kInt32 ? static_cast<const int32_t*>(data)[i]
                                  : static_cast<const int64_t*>(data)[i];
  }
  // kUsage if an id is not a row of the weight.
  void check() const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = at(i);
      if ((id >= 0 && id < rows) || (padded && id == -1)) continue;
      throw Error(ErrorCode::kUsage,
                  "id " + std::to_string(id) + " at position " + std::to_string(i) +
                      " of the batch is not one of the " + std::to_string(rows) +
                      " rows of the weight",
                  "embedding", "check the ids of the data and the vocabulary of the model");
    }
  }
};

EmbeddingIds ids_of(const Argument& ids, int64_t rows, bool pooled) {
  const Shape& shape = ids.shape;
  return {.data = ids.data,
          .dtype = ids.dtype,
          .count = shape.elements(),
          .rows = rows,
          .pool = pooled ? shape[shape.rank() - 1] : 1,
          .padded = pooled};
}

constexpr int64_t kEmbeddingColumns = 256;  // columns of a row that one thread sums at a time
constexpr int64_t kPlacesAhead = 8;  // rows that are requested from memory before they are needed

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

// y[place] = the sum of the rows of its ids. A list with one id has the bits of its row.
template <typename T>
struct EmbeddingSum {
  EmbeddingIds ids;
  const T* weight;
  T* y;
  int64_t size;

  void run() const {
    ids.check();
    const bool parallel = ids.count * size >= cpu::kParallelElements;
    const int64_t places = ids.count / ids.pool;
#pragma omp parallel for if (parallel)
    for (int64_t place = 0; place < places; ++place) {
      const int64_t begin = place * ids.pool, next = begin + kPlacesAhead * ids.pool;
      if (next < ids.count) request(ids.at(next));
      sum_list(begin, begin + ids.pool, y + place * size);
    }
  }

 private:
  const T* row_of(int64_t i) const {
    const int64_t id = ids.at(i);
    return id < 0 ? nullptr : weight + id * size;
  }
  void request(int64_t id) const {
    if (id < 0) return;
    const T* row = weight + id * size;
    __builtin_prefetch(row);
    __builtin_prefetch(row + size - 1);
  }
  void sum_list(int64_t begin, int64_t end, T* to) const {
    while (begin < end && !row_of(begin)) ++begin;
    if (begin == end) {
      std::memset(static_cast<void*>(to), 0, size * sizeof(T));
      return;
    }
    const T* first = row_of(begin++);
    while (begin < end && !row_of(begin)) ++begin;
    if (begin == end) {
      std::memcpy(to, first, size * sizeof(T));
      return;
    }
    for (int64_t column = 0; column < size; column += kEmbeddingColumns) {
      const int64_t columns = std::min(kEmbeddingColumns, size - column);
      float sum[kEmbeddingColumns];
      std::fill_n(sum, columns, 0.0f);
      add_columns(sum, first + column, columns);
      for (int64_t i = begin; i < end; ++i) {
        if (const T* row = row_of(i)) add_columns(sum, row + column, columns);
      }
      store_columns(sum, to + column, columns);
    }
  }
};

// The ids that are not -1 with the places that read them, by id and in order within an id: a stable
// radix sort. Its time does not depend on the rows of the weight.
class SortedIds {
 public:
  SortedIds(void* workspace, int64_t count)
      : ids_(static_cast<uint32_t*>(workspace)),
        places_(ids_ + count),
        other_ids_(places_ + count),
        other_places_(other_ids_ + count),
        starts_(other_places_ + count) {}
  static size_t bytes(int64_t count) {
    return static_cast<size_t>(5 * count + 1) * sizeof(uint32_t);
  }

  // Returns the number of different ids: run k of them is starts()[k] to starts()[k + 1] - 1.
  int64_t sort(const EmbeddingIds& ids) {
    int64_t count = 0;
    for (int64_t i = 0; i < ids.count; ++i) {
      if (ids.at(i) < 0) continue;
      ids_[count] = static_cast<uint32_t>(ids.at(i));
      places_[count++] = static_cast<uint32_t>(ids.pool == 1 ? i : i / ids.pool);
    }
    const int bits =
        std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(ids.rows - 1))));
    const int passes = (bits + kDigitBits - 1) / kDigitBits, digit = (bits + passes - 1) / passes;
    for (int pass = 0; pass < passes; ++pass) sort_by_digit(count, pass * digit, digit);
    return find_runs(count);
  }
  uint32_t id(int64_t run) const { return ids_[starts_[run]]; }
  const uint32_t* starts() const { return starts_; }
  const uint32_t* places() const { return places_; }

 private:
  static constexpr int kDigitBits = 11;

  void sort_by_digit(int64_t count, int shift, int bits) {
    uint32_t ends[1 << kDigitBits] = {};
    const uint32_t mask = (1u << bits) - 1;
    for (int64_t i = 0; i < count; ++i) ++ends[(ids_[i] >> shift) & mask];
    uint32_t total = 0;
    for (uint32_t value = 0; value <= mask; ++value) total += std::exchange(ends[value], total);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t to = ends[(ids_[i] >> shift) & mask]++;
      other_ids_[to] = ids_[i];
      other_places_[to] = places_[i];
    }
    std::swap(ids_, other_ids_);
    std::swap(places_, other_places_);
  }
  int64_t find_runs(int64_t count) {
    int64_t runs = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (i == 0 || ids_[i] != ids_[i - 1]) starts_[runs++] = static_cast<uint32_t>(i);
    }
    starts_[runs] = static_cast<uint32_t>(count);
    return runs;
  }

  uint32_t *ids_, *places_, *other_ids_, *other_places_;  // [count]
  uint32_t* starts_;                                      // [count + 1]
};

template <typename T>
struct EmbeddingGradient {
  EmbeddingIds ids;
  SortedIds sorted;
  const T* dy;
  T* dweight;
  int64_t size, padding;
  int64_t* rows = nullptr;  // a sparse gradient's rows; their values are in dweight

  // Sums run k into the row `to` of dweight: columns first to first + kEmbeddingColumns - 1.
  void sum_run(const SortedIds& by_id, int64_t k, int64_t to, int64_t first) const {
    const int64_t columns = std::min(kEmbeddingColumns, size - first);
    float sum[kEmbeddingColumns];
    std::fill_n(sum, columns, 0.0f);
    if (by_id.id(k) != padding) {
      for (uint32_t i = by_id.starts()[k]; i < by_id.starts()[k + 1]; ++i) {
        add_columns(sum, dy + static_cast<int64_t>(by_id.places()[i]) * size + first, columns);
      }
    }
    store_columns(sum, dweight + to * size + first, columns);
  }

  void clear_rows(int64_t begin, int64_t end) const {
    if (begin >= end) return;
    std::memset(static_cast<void*>(dweight + begin * size), 0, (end - begin) * size * sizeof(T));
  }

  void run() const {
    ids.check();
    SortedIds by_id = sorted;
    const int64_t runs = by_id.sort(ids);
    const int64_t pieces = (size + kEmbeddingColumns - 1) / kEmbeddingColumns;
    const bool parallel = ids.rows * size >= cpu::kParallelElements;
#pragma omp parallel if (parallel)
    {
#pragma omp for schedule(static)
      for (int64_t row = 0; row < ids.rows; row += kClearedRows) {
        clear_rows(row, std::min(row + kClearedRows, ids.rows));
      }
#pragma omp for schedule(dynamic, 4)
      for (int64_t unit = 0; unit < runs * pieces; ++unit) {
        const int64_t k = unit / pieces;
        sum_run(by_id, k, by_id.id(k), unit % pieces * kEmbeddingColumns);
      }
    }
  }

  void run_sparse() const {
    ids.check();
    SortedIds by_id = sorted;
    const int64_t runs = by_id.sort(ids);
    std::fill_n(rows, ids.count, int64_t{-1});
    const bool parallel = ids.count * size >= cpu::kParallelElements;
#pragma omp parallel for schedule(dynamic, 64) if (parallel)
    for (int64_t k = 0; k < runs; ++k) {
      const int64_t slot = by_id.starts()[k];
      if (by_id.id(k) != padding) rows[slot] = by_id.id(k);
      for (int64_t first = 0; first < size; first += kEmbeddingColumns) {
        sum_run(by_id, k, slot, first);
      }
      clear_rows(slot + 1, by_id.starts()[k + 1]);
    }
    clear_rows(by_id.starts()[runs], ids.count);
  }

 private:
  static constexpr int64_t kClearedRows = 64;
};

void define_row_sums(KernelDef& def, bool sparse) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    query.workspace(SortedIds::bytes(query.input_var(0).shape.elements()));
  };
  def.create = [sparse](KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const Argument& dweight = context.outputs[sparse ? 1 : 0];
    EmbeddingIds ids =
        ids_of(context.inputs[0], attributes.integer("rows"), attributes.boolean("pooled"));
    if (sparse) ids.padded = ids.padded || attributes.boolean("padded");
    FLEET_CHECK(ids.count < INT32_MAX && ids.rows < INT32_MAX, "too many ids");
    const SortedIds sorted(context.workspace, ids.count);
    return cpu::with_loop_type(dweight.dtype, [&]<typename T>(T) {
      const EmbeddingGradient<T> gradient{
          .ids = ids,
          .sorted = sorted,
          .dy = context.inputs[1].as<const T>(),
          .dweight = dweight.as<T>(),
          .size = dweight.shape[1],
          .padding = attributes.integer("padding_idx"),
          .rows = sparse ? context.outputs[0].as<int64_t>() : nullptr};
      return make_kernel([=](Stream&) { gradient.rows ? gradient.run_sparse() : gradient.run(); });
    });
  };
}

}  // namespace

FLEET_KERNEL(cpu, embedding) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const Argument& weight = context.inputs[1];
    return cpu::with_loop_type(weight.dtype, [&]<typename T>(T) {
      const EmbeddingSum<T> sum{
          .ids = ids_of(context.inputs[0], weight.shape[0], context.attributes().boolean("pooled")),
          .weight = weight.as<const T>(),
          .y = context.outputs[0].as<T>(),
          .size = weight.shape[1]};
      return make_kernel([=](Stream&) { sum.run(); });
    });
  };
}

FLEET_KERNEL(cpu, embedding_grad) { define_row_sums(def, /*sparse=*/false); }
FLEET_KERNEL(cpu, embedding_grad_rows) { define_row_sums(def, /*sparse=*/true); }

}  // namespace fleet
