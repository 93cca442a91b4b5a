// In place of cuBLASLt: products by loops.
#include "backend/cuda/channels.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

template <typename T>
void multiply(const Product& p, const ProductArguments& arguments) {
  const T *a = static_cast<const T*>(arguments.a), *b = static_cast<const T*>(arguments.b);
  T *d = static_cast<T*>(arguments.d), *bias = static_cast<T*>(arguments.bias);
  const auto a_at = [&](int64_t n, int64_t i, int64_t k) {
    const int64_t in = p.transpose_a ? k * p.rows + i : i * p.depth + k;
    return double{to_float(a[n * p.rows * p.depth + in])};
  };
  const auto b_at = [&](int64_t n, int64_t k, int64_t j) {
    const int64_t in = p.transpose_b ? j * p.depth + k : k * p.columns + j;
    return double{to_float(b[n * p.depth * p.columns + in])};
  };
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t i = 0; i < p.rows; ++i) {
      for (int64_t j = 0; j < p.columns; ++j) {
        double sum = p.epilogue == Product::kAddBias ? to_float(bias[j]) : 0;
        for (int64_t k = 0; k < p.depth; ++k) sum += a_at(n, i, k) * b_at(n, k, j);
        d[(n * p.rows + i) * p.columns + j] = from_float<T>(static_cast<float>(sum));
      }
    }
  }
  for (int64_t i = 0; p.epilogue == Product::kSumA && i < p.rows; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < p.depth; ++k) sum += a_at(0, i, k);
    bias[i] = from_float<T>(static_cast<float>(sum));
  }
}

}  // namespace

size_t workspace_of(const Product& p) {
  return p.epilogue == Product::kSumA ? sum_rows_workspace({p.dtype, p.depth, p.rows, p.rows}) : 0;
}

std::unique_ptr<Kernel> make_product(Device&, const Product& product,
                                     const ProductArguments& arguments) {
  return make_kernel([product, arguments](Stream& stream) {
    emulator::issue(stream_of(stream), [=] {
      dispatch(product.dtype, [&](auto type) { multiply<decltype(type)>(product, arguments); });
    });
  });
}

}  // namespace fleet::cuda
