// Products of matrices one of whose sizes is known only when they run.
#pragma once

#include "backend/cpu/dnnl_glue.h"

namespace fleet::cpu {

// c[rows, columns] = a[rows, depth] b[depth, columns], or c += it, with oneDNN. An element (i, j)
// of a matrix is at i * strides[0] + j * strides[1]; one of the two strides is 1. Not thread-safe.
class RuntimeProduct {
 public:
  struct Matrix {
    DType dtype = DType::kFloat32;
    int64_t strides[2] = {0, 1};
  };
  enum Free { kRows, kDepth };  // the size that run() gets
  // size, other: rows x columns x depth without the free one, in this order.
  RuntimeProduct(Free free, int64_t size, int64_t other, const Matrix& a, const Matrix& b,
                 const Matrix& c, bool adds = false);
  // Does nothing for 0 (kDepth: c keeps its values).
  void run(int64_t size, const void* a, const void* b, void* c);

 private:
  dnnl::memory::desc desc(const Matrix& matrix, int64_t rows, int64_t columns) const;

  const Free free_;
  const int64_t first_, second_;
  const Matrix a_, b_, c_;
  int64_t size_ = -1;  // that of memories_
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
};

}  // namespace fleet::cpu
