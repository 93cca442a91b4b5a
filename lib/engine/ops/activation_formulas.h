// Elementwise operations and their derivatives for one element, in float, as the kernels of every
// backend run them. Math: the backend's exp, tanh, erf and sigmoid. Branch-free where it matters:
// CPUs run them in vectorized loops. Where a slope is 0 the gradient is 0, even if dy is Inf or
// NaN, as in PyTorch.
#pragma once

#include "base/cpu.h"
#include "graph/op.h"

namespace fleet {

// NaN passes, as in PyTorch.
struct Relu {
  FLEET_INLINE float operator()(float x) const { return x <= 0 ? 0 : x; }
};
struct ReluGrad {
  FLEET_INLINE float operator()(float y, float dy) const { return y <= 0 ? 0 : dy; }
};

struct Relu6 {
  FLEET_INLINE float operator()(float x) const { return x < 0 ? 0 : (x > 6 ? 6 : x); }
};
struct Relu6Grad {
  FLEET_INLINE float operator()(float y, float dy) const { return ((y <= 0) | (y >= 6)) ? 0 : dy; }
};

struct HardSigmoid {
  static constexpr float kSixth = 1.0f / 6;
  FLEET_INLINE float operator()(float x) const { return Relu6()(x + 3) * kSixth; }
};
struct HardSigmoidGrad {
  FLEET_INLINE float operator()(float y, float dy) const {
    const float inside = HardSigmoid::kSixth * dy;
    return ((y <= 0) | (y >= 1)) ? 0 : inside;
  }
};

struct HardSwish {
  FLEET_INLINE float operator()(float x) const { return x * Relu6()(x + 3) * HardSigmoid::kSixth; }
};
struct HardSwishGrad {
  FLEET_INLINE float operator()(float x, float dy) const {
    const float inside = (x * (1.0f / 3) + 0.5f) * dy;
    return x <= -3 ? 0 : (x >= 3 ? dy : inside);
  }
};

template <typename Math>
struct Sigmoid {
  FLEET_INLINE float operator()(float x) const { return Math::sigmoid(x); }
};
struct SigmoidGrad {
  FLEET_INLINE float operator()(float y, float dy) const { return dy * y * (1 - y); }
};

template <typename Math>
struct Silu {
  FLEET_INLINE float operator()(float x) const { return x * Math::sigmoid(x); }
};
template <typename Math>
struct SiluGrad {
  FLEET_INLINE float operator()(float x, float dy) const {
    const float s = Math::sigmoid(x);
    return dy * s * (x * (1 - s) + 1);
  }
};

template <typename Math>
struct Tanh {
  FLEET_INLINE float operator()(float x) const { return Math::tanh(x); }
};
struct TanhGrad {
  FLEET_INLINE float operator()(float y, float dy) const { return dy * (1 - y * y); }
};

template <typename Math>
struct Gelu {
  static constexpr float kRootHalf = 0.70710678118654752f;  // 1 / sqrt(2)
  FLEET_INLINE float operator()(float x) const { return 0.5f * x * (1 + Math::erf(x * kRootHalf)); }
};
template <typename Math>
struct GeluGrad {
  static constexpr float kDensity = 0.39894228040143268f;  // 1 / sqrt(2 pi)
  FLEET_INLINE float operator()(float x, float dy) const {
    const float below = 0.5f * (1 + Math::erf(x * Gelu<Math>::kRootHalf));
    return dy * (below + x * kDensity * Math::exp(-0.5f * x * x));
  }
};

template <typename Math>
struct GeluTanh {
  static constexpr float kScale = 0.79788456080286536f;  // sqrt(2 / pi)
  static constexpr float kCube = 0.044715f;
  FLEET_INLINE float operator()(float x) const {
    const float inner = kScale * (x + kCube * x * x * x);
    return 0.5f * x * (1 + Math::tanh(inner));
  }
};
template <typename Math>
struct GeluTanhGrad {
  static constexpr float kScale = GeluTanh<Math>::kScale, kCube = GeluTanh<Math>::kCube;
  FLEET_INLINE float operator()(float x, float dy) const {
    const float square = x * x;
    const float t = Math::tanh(kScale * x * (1 + kCube * square));
    const float slope = kScale * (1 + 3 * kCube * square);
    return dy * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope);
  }
};

template <typename Math>
struct Exp {
  FLEET_INLINE float operator()(float x) const { return Math::exp(x); }
};
struct ExpGrad {
  FLEET_INLINE float operator()(float y, float dy) const { return y * dy; }
};

struct Scale {
  float factor, bias;
  explicit Scale(const Attributes& attributes)
      : factor(static_cast<float>(attributes.number("scale"))),
        bias(static_cast<float>(attributes.number("bias"))) {}
  FLEET_INLINE float operator()(float x) const { return x * factor + bias; }
};

struct Clip {
  float min, max;
  explicit Clip(const Attributes& attributes)
      : min(static_cast<float>(attributes.number("min"))),
        max(static_cast<float>(attributes.number("max"))) {}
  FLEET_INLINE float operator()(float x) const { return x < min ? min : (x > max ? max : x); }
};
struct ClipGrad {
  Clip bounds;
  FLEET_INLINE float operator()(float x, float dy) const {
    return ((x >= bounds.min) & (x <= bounds.max)) ? dy : 0;
  }
};

}  // namespace fleet
