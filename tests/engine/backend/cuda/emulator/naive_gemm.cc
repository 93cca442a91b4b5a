// In place of cuBLASLt: products by loops.
#include "backend/cuda/channels.h"
#include "backend/cuda/gelu_epilogue.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

double bias_at(const ProductArguments& arguments, int64_t j) {
  return dispatch(arguments.bias_type, [&](auto type) -> double {
    return to_float(static_cast<const decltype(type)*>(arguments.bias)[j]);
  });
}

template <typename T, typename Result>
void multiply(const Product& p, const ProductArguments& arguments) {
  const T *a = static_cast<const T*>(arguments.a), *b = static_cast<const T*>(arguments.b);
  T* bias = static_cast<T*>(arguments.bias);
  const bool gelu = p.epilogue == Product::kGelu;
  Result* d = static_cast<Result*>(gelu ? arguments.before : arguments.d);
  const auto stride = [](int64_t given, int64_t width) { return given > 0 ? given : width; };
  const int64_t a_stride = stride(p.a_stride, p.transpose_a ? p.rows : p.depth);
  const int64_t d_stride = stride(p.d_stride, p.columns);
  const auto a_at = [&](int64_t n, int64_t i, int64_t k) {
    const int64_t in = p.transpose_a ? k * a_stride + i : i * a_stride + k;
    return double{to_float(a[n * a_stride * (p.transpose_a ? p.depth : p.rows) + in])};
  };
  const auto b_at = [&](int64_t n, int64_t k, int64_t j) {
    const int64_t in = p.transpose_b ? j * p.depth + k : k * p.columns + j;
    return double{to_float(b[n * p.depth * p.columns + in])};
  };
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t i = 0; i < p.rows; ++i) {
      for (int64_t j = 0; j < p.columns; ++j) {
        Result& to = d[(n * p.rows + i) * d_stride + j];
        double sum = p.epilogue == Product::kAddBias ? to_float(bias[j]) : 0;
        if (gelu && bias) sum = bias_at(arguments, j);
        if (p.adds) sum += to_float(to);
        for (int64_t k = 0; k < p.depth; ++k) sum += a_at(n, i, k) * b_at(n, k, j);
        to = from_float<Result>(static_cast<float>(sum));
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
      dispatch(product.dtype, [&](auto type) {
        dispatch(product.result_type(), [&](auto result) {
          multiply<decltype(type), decltype(result)>(product, arguments);
        });
      });
    });
    const int64_t count = product.rows * product.columns;
    if (product.epilogue == Product::kGelu) {
      gelu_after(count, product.dtype, arguments.before, arguments.d, stream_of(stream));
    } else if (product.epilogue == Product::kGeluGradient) {
      gelu_gradient_after(count, product.dtype, arguments.before, arguments.d, stream_of(stream));
    }
  });
}

}  // namespace fleet::cuda
