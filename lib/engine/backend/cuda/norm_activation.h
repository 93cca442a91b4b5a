// The activations that a batch normalization computes (NormActivation), for kernels.
#pragma once

#include "backend/cuda/elementwise.h"
#include "backend/cuda/norm.h"
#include "ops/activation_formulas.h"

namespace fleet::cuda {

// of(u): the activation. slope(u, dy): the gradient of u, from the gradient of the result.
template <NormActivation activation>
struct NormFormula {
  __device__ static float of(float u) { return u; }
  __device__ static float slope(float, float dy) { return dy; }
};
template <>
struct NormFormula<NormActivation::kRelu> {
  __device__ static float of(float u) { return Relu()(u); }
  __device__ static float slope(float u, float dy) { return ReluGrad()(u, dy); }
};
template <>
struct NormFormula<NormActivation::kRelu6> {
  __device__ static float of(float u) { return Relu6()(u); }
  __device__ static float slope(float u, float dy) { return Relu6Grad()(u, dy); }
};
template <>
struct NormFormula<NormActivation::kSilu> {
  __device__ static float of(float u) { return Silu<DeviceMath>()(u); }
  __device__ static float slope(float u, float dy) { return SiluGrad<DeviceMath>()(u, dy); }
};
template <>
struct NormFormula<NormActivation::kHardSwish> {
  __device__ static float of(float u) { return HardSwish()(u); }
  __device__ static float slope(float u, float dy) { return HardSwishGrad()(u, dy); }
};

template <NormActivation activation>
struct NormActivationConstant {
  static constexpr NormActivation kValue = activation;
};

// Calls body(NormActivationConstant) for one of the recomputed activations.
template <typename Body>
void dispatch_recomputed(NormActivation activation, Body body) {
  switch (activation) {
    case NormActivation::kRelu6:
      return body(NormActivationConstant<NormActivation::kRelu6>());
    case NormActivation::kSilu:
      return body(NormActivationConstant<NormActivation::kSilu>());
    case NormActivation::kHardSwish:
      return body(NormActivationConstant<NormActivation::kHardSwish>());
    default:
      FLEET_CHECK(false, "this activation is not computed again");
  }
}

}  // namespace fleet::cuda
