#include "backend/cuda/elementwise.h"
#include "backend/cuda/gelu_epilogue.h"
#include "ops/activation_formulas.h"

namespace fleet::cuda {

void gelu_after(int64_t count, DType dtype, const void* before, void* y, cudaStream_t stream) {
  dispatch(dtype, [&](auto type) {
    using T = decltype(type);
    map(stream, count, GeluTanh<DeviceMath>(), static_cast<T*>(y), static_cast<const T*>(before));
  });
}

void gelu_gradient_after(int64_t count, DType dtype, const void* before, void* dx,
                         cudaStream_t stream) {
  dispatch(dtype, [&](auto type) {
    using T = decltype(type);
    map(stream, count, GeluTanhGrad<DeviceMath>(), static_cast<T*>(dx),
        static_cast<const T*>(before), static_cast<const T*>(dx));
  });
}

}  // namespace fleet::cuda
