// The parts of a batch normalization that cuDNN can fuse into the convolution before or after it
// (backend/cuda/dnn_patterns.h), as separate kernels for cases where it cannot; and the parts that
// remain after fusion. Rows, types and streams as in norm.h; factor and constant have the image's
// type.
#pragma once

#include "backend/cuda/norm.h"

namespace fleet::cuda {

// y = max(factor x + constant, 0)
void scale_bias_relu(const NormShape& shape, const void* x, const void* factor,
                     const void* constant, void* y, cudaStream_t stream);

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
  void *factor = nullptr, *constant = nullptr;
  DType low = DType::kFloat16;  // of factor and constant
  bool shifted = false;         // sums are of x - mean
  double epsilon = 0, momentum = 0;
};
void norm_finish(const NormFinish& finish, cudaStream_t stream);

// The gradient after relu(normalization of x), in place: dz is zero where the relu blocked it; also
// computes the parameters' gradients. Workspace: norm_workspace().
struct ReluNormGradient {
  NormShape shape;
  const void* x = nullptr;
  const float *mean = nullptr, *inverse = nullptr, *scale = nullptr, *bias = nullptr;
  void* dz = nullptr;
  float *dscale = nullptr, *dbias = nullptr;
  void* workspace = nullptr;
};
void relu_norm_gradient(const ReluNormGradient& gradient, cudaStream_t stream);

}  // namespace fleet::cuda
