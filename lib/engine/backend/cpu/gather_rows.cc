#include <string>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct RowIndex {
  const int64_t* index;
  int64_t samples, reads, rows;  // N, M, S

  // kUsage if an index is not a row of its sample.
  void check() const {
    for (int64_t i = 0; i < samples * reads; ++i) {
      if (index[i] >= 0 && index[i] < rows) continue;
      throw Error(ErrorCode::kUsage,
                  "index " + std::to_string(index[i]) + " at position " +
                      std::to_string(i % reads) + " of sample " + std::to_string(i / reads) +
                      " is not one of its " + std::to_string(rows) + " rows",
                  "gather_rows", "check the positions of the data");
    }
  }
};

// For each row of x, the reads of it in order: a list through the reads of its sample.
struct ReadLists {
  int32_t *first, *next;  // [N * S], [N * M]; -1: the end

  ReadLists(void* workspace, int64_t rows)
      : first(static_cast<int32_t*>(workspace)), next(first + rows) {}
  static size_t bytes(int64_t rows, int64_t reads) {
    return static_cast<size_t>(rows + reads) * sizeof(int32_t);
  }
  void make(const RowIndex& from) const {
    std::fill_n(first, from.samples * from.rows, -1);
    for (int64_t i = from.samples * from.reads - 1; i >= 0; --i) {
      int32_t& head = first[i / from.reads * from.rows + from.index[i]];
      next[i] = head;
      head = static_cast<int32_t>(i);
    }
  }
};

constexpr int64_t kGatheredColumns = 256;  // columns that are summed at a time

template <typename T>
FLEET_SIMD void sum_reads(const ReadLists& lists, int64_t row, const T* dy, T* dx, int64_t size) {
  for (int64_t begin = 0; begin < size; begin += kGatheredColumns) {
    const int64_t count = std::min(kGatheredColumns, size - begin);
    float sum[kGatheredColumns] = {};
    for (int32_t read = lists.first[row]; read >= 0; read = lists.next[read]) {
      const T* from = dy + read * size + begin;
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<float>(from[i]);
    }
    T* to = dx + row * size + begin;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) to[i] = sum[i];
  }
}

}  // namespace

FLEET_KERNEL(cpu, gather_rows) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const Argument &x = context.inputs[0], &index = context.inputs[1];
    const RowIndex reads{index.as<const int64_t>(), index.shape[0], index.shape[1], x.shape[1]};
    const int64_t bytes = x.shape[2] * static_cast<int64_t>(size_of(x.dtype));
    const char* from = x.as<const char>();
    char* to = context.outputs[0].as<char>();
    return make_kernel([=](Stream&) {
      reads.check();
      const int64_t count = reads.samples * reads.reads;
#pragma omp parallel for if (count * bytes >= cpu::kParallelElements * 4)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = i / reads.reads * reads.rows + reads.index[i];
        std::memcpy(to + i * bytes, from + row * bytes, bytes);
      }
    });
  };
}

FLEET_KERNEL(cpu, gather_rows_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Shape& index = query.input_var(0).shape;
    query.workspace(
        ReadLists::bytes(index[0] * query.attributes().integer("rows"), index.elements()));
  };
  def.create = [](KernelContext& context) {
    const Argument &index = context.inputs[0], &dx = context.outputs[0];
    const RowIndex reads{index.as<const int64_t>(), index.shape[0], index.shape[1], dx.shape[1]};
    const int64_t rows = reads.samples * reads.rows, size = dx.shape[2];
    FLEET_CHECK(rows < INT32_MAX && index.shape.elements() < INT32_MAX, "too many rows");
    const ReadLists lists(context.workspace, rows);
    return cpu::with_loop_type(dx.dtype, [&]<typename T>(T) {
      const T* dy = context.inputs[1].as<const T>();
      T* to = dx.as<T>();
      return make_kernel([=](Stream&) {
        reads.check();
        lists.make(reads);
#pragma omp parallel for if (rows * size >= cpu::kParallelElements)
        for (int64_t row = 0; row < rows; ++row) sum_reads(lists, row, dy, to, size);
      });
    });
  };
}

}  // namespace fleet
