// Our own batch normalization: any type, followed by an addition and a relu, or by another
// activation, in two passes over memory in either direction. x consists of rows of channels (NHWC,
// or a matrix); parameters and statistics are float32. Enqueued on `stream`, may be recorded in a
// CUDA graph; does not allocate and is bitwise reproducible.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/layouts.h"
#include "exec/kernel.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"
#include "tensor/shape.h"

namespace fleet::cuda {

struct NormShape {
  DType dtype = DType::kFloat32;
  int64_t rows = 0, channels = 0;
};

// relu leaves a mask for the gradient; the input of those after it is computed again.
enum class NormActivation { kNone, kRelu, kRelu6, kSilu, kHardSwish };
// Of the operations' attribute "activation".
NormActivation norm_activation(const std::string& name);
constexpr bool is_recomputed(NormActivation activation) {
  return activation > NormActivation::kRelu;
}

// Bytes of the workspace, for either direction.
size_t norm_workspace(const NormShape& shape);
// Bytes of the mask: the elements that the relu passed.
int64_t norm_mask_bytes(const NormShape& shape);

// Null: no such argument.
struct NormForward {
  NormShape shape;
  const void* x = nullptr;
  const float *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr;
  const void* z = nullptr;  // added before the activation; may equal y
  void* y = nullptr;
  // Running statistics; may equal mean and variance.
  float *mean_out = nullptr, *variance_out = nullptr;
  float *saved_mean = nullptr, *saved_variance = nullptr;
  uint8_t* mask = nullptr;
  NormActivation activation = NormActivation::kNone;
  bool is_test = false;
  double epsilon = 0, momentum = 0;
  void* workspace = nullptr;
};
// y = activation(scale (x - mean) / sqrt(variance + epsilon) + bias [+ z])
void norm_forward(const NormForward& norm, cudaStream_t stream);

inline constexpr int kMaxNormGradients = 8;

struct NormBackward {
  NormShape shape;
  const void* x = nullptr;
  const float *scale = nullptr, *mean = nullptr,
              *variance = nullptr;                    // from the normalization of x
  const float* bias = nullptr;                        // of a recomputed activation
  NormActivation activation = NormActivation::kNone;  // only recomputed ones are given
  const uint8_t* mask = nullptr;
  const void* dy[kMaxNormGradients] = {};  // their sum is the gradient of y
  int gradients = 0;
  void* dx = nullptr;  // may be one of dy
  void* dz = nullptr;  // may be dy[0]
  float *dscale = nullptr, *dbias = nullptr;
  float *product = nullptr, *sum = nullptr;  // copies of dscale and dbias
  bool is_test = false;
  double epsilon = 0;
  int64_t count = 0;  // rows that dscale and dbias are sums over, for dx; 0: the rows of x
  void* workspace = nullptr;
};
void norm_backward(const NormBackward& norm, cudaStream_t stream);
// The parts for a recomputed activation, which has no z, mask and dz (norm_activation.cu): y from x
// with these statistics, and norm_backward().
void norm_activation_transform(const NormForward& norm, const float* mean, const float* variance,
                               cudaStream_t stream);
void norm_activation_backward(const NormBackward& norm, cudaStream_t stream);
// Takes the inputs from `first` on as dy. kUnsupported if they are too many.
void take_gradients(const KernelContext& context, size_t first, NormBackward* norm);
// Only the last part: dx from dz, the single gradient (after the relu if there is a mask), and from
// the parameters' gradients.
void norm_data_gradient(const NormBackward& norm, cudaStream_t stream);

inline NormShape norm_shape(const Shape& x, DType dtype) {
  return {.dtype = dtype, .rows = x.elements() / x[1], .channels = x[1]};
}

inline Layout rows_of_channels(const Shape& x) {
  return x.rank() == 2 ? Layout::plain(x) : channels_last(x);
}

inline Layout norm_mask_layout(const NormShape& shape) {
  return Layout::opaque(norm_mask_bytes(shape), "batch_norm_mask");
}

// From here on (norm_parts.cu): the parts of a batch normalization, for operations that compute the
// others.

// sum and squares[channels]: of x and of x squared; with a pivot[channels], of x - pivot.
// Workspace: norm_workspace().
void sum_squares(const NormShape& shape, const void* x, const float* pivot, float* sum,
                 float* squares, void* workspace, cudaStream_t stream);

// From sums over `count` rows: the batch's statistics, the running ones, and the normalization as
// one factor and constant per channel. Every output except saved_mean and saved_variance may be
// null.
struct NormFinish {
  int64_t channels = 0, count = 0;
  const float *sum = nullptr, *squares = nullptr;
  const float *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr;
  float *mean_out = nullptr, *variance_out = nullptr;
  float *saved_mean = nullptr, *saved_variance = nullptr;
  float* inverse = nullptr;  // 1 / sqrt(variance + epsilon)
  float *factor = nullptr, *constant = nullptr;
  bool shifted = false;  // sums are of x - mean
  double epsilon = 0, momentum = 0;
};
void norm_finish(const NormFinish& finish, cudaStream_t stream);

}  // namespace fleet::cuda
