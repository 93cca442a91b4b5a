#include <cmath>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

// A sample is `positions` rows of `channels` elements.
struct Samples {
  int64_t count, positions, channels;
  float epsilon;
  int64_t size() const { return positions * channels; }
};

Samples samples_of(const Shape& x, const Attributes& attributes) {
  const int64_t channels = x[x.rank() - 1];
  return {.count = x[0],
          .positions = x.elements() / x[0] / channels,
          .channels = channels,
          .epsilon = static_cast<float>(attributes.number("epsilon"))};
}

float mean_norm(const float* norms, const Samples& s) {
  float sum = 0;
  for (int64_t c = 0; c < s.channels; ++c) sum += norms[c];
  return sum / static_cast<float>(s.channels) + s.epsilon;
}

template <typename T>
FLEET_SIMD void add_response_squares(const T* x, float* sums, int64_t channels) {
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) {
    const float value = x[c];
    sums[c] += value * value;
  }
}

template <typename T>
FLEET_SIMD void add_response_products(const T* x, const T* dy, float* products, float* sums,
                                      int64_t channels) {
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) {
    const float slope = dy[c];
    products[c] += slope * static_cast<float>(x[c]);
    sums[c] += slope;
  }
}

// y = x factor + constant
template <typename T>
FLEET_SIMD void scale_response_row(const T* x, const float* factor, const float* constant, T* y,
                                   int64_t channels) {
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) {
    y[c] = static_cast<float>(x[c]) * factor[c] + constant[c];
  }
}

// dx = dy factor + x slope; dx may be dy.
template <typename T>
FLEET_SIMD void combine_rows(const T* x, const T* dy, const float* factor, const float* slope,
                             T* dx, int64_t channels) {
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) {
    dx[c] = static_cast<float>(dy[c]) * factor[c] + static_cast<float>(x[c]) * slope[c];
  }
}

template <typename T>
void normalize_sample(const Samples& s, const T* x, const float* scale, const float* bias, T* y,
                      float* norms, float* factor) {
  std::fill_n(norms, s.channels, 0.0f);
  for (int64_t p = 0; p < s.positions; ++p)
    add_response_squares(x + p * s.channels, norms, s.channels);
  for (int64_t c = 0; c < s.channels; ++c) norms[c] = std::sqrt(norms[c]);
  const float mean = mean_norm(norms, s);
  for (int64_t c = 0; c < s.channels; ++c) factor[c] = 1 + scale[c] * norms[c] / mean;
  for (int64_t p = 0; p < s.positions; ++p) {
    scale_response_row(x + p * s.channels, factor, bias, y + p * s.channels, s.channels);
  }
}

// products and sums get the sample's shares of dscale and dbias. dx may be null.
template <typename T>
void differentiate_sample(const Samples& s, const T* x, const float* scale, const float* norms,
                          const T* dy, T* dx, float* products, float* sums, float* factor) {
  float* slope = factor + s.channels;
  std::fill_n(products, s.channels, 0.0f);
  std::fill_n(sums, s.channels, 0.0f);
  for (int64_t p = 0; p < s.positions; ++p) {
    add_response_products(x + p * s.channels, dy + p * s.channels, products, sums, s.channels);
  }
  const float mean = mean_norm(norms, s);
  float shared = 0;
  for (int64_t c = 0; c < s.channels; ++c) shared += scale[c] * products[c] * norms[c];
  shared /= static_cast<float>(s.channels) * mean * mean;
  for (int64_t c = 0; c < s.channels; ++c) {
    factor[c] = 1 + scale[c] * norms[c] / mean;
    slope[c] = norms[c] > 0 ? (scale[c] * products[c] / mean - shared) / norms[c] : 0;
    products[c] *= norms[c] / mean;
  }
  for (int64_t p = 0; p < s.positions && dx; ++p) {
    const int64_t at = p * s.channels;
    combine_rows(x + at, dy + at, factor, slope, dx + at, s.channels);
  }
}

// The sum over the samples, of values 2 C apart.
void sum_samples(const Samples& s, const float* values, float* total) {
  for (int64_t c = 0; c < s.channels && total; ++c) {
    float sum = 0;
    for (int64_t n = 0; n < s.count; ++n) sum += values[n * 2 * s.channels + c];
    total[c] = sum;
  }
}

}  // namespace

// Workspace: a sample's norms, unless they are an output, and factors.
FLEET_KERNEL(cpu, global_response_norm) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Samples s = samples_of(query.input_var(0).shape, query.attributes());
    query.workspace(static_cast<size_t>(s.count * s.channels) * 2 * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const Samples s = samples_of(context.inputs[0].shape, context.attributes());
      const T* x = context.inputs[0].as<const T>();
      const float* scale = context.inputs[1].as<const float>();
      const float* bias = context.inputs[2].as<const float>();
      T* y = context.outputs[0].as<T>();
      auto* factors = static_cast<float*>(context.workspace);
      float* saved = context.outputs[1].as<float>();
      float* norms = saved ? saved : factors + s.count * s.channels;
      return make_kernel([=](Stream&) {
#pragma omp parallel for
        for (int64_t n = 0; n < s.count; ++n) {
          normalize_sample(s, x + n * s.size(), scale, bias, y + n * s.size(),
                           norms + n * s.channels, factors + n * s.channels);
        }
      });
    });
  };
}

// Workspace: each sample's shares of dscale and dbias, then its factors and slopes.
FLEET_KERNEL(cpu, global_response_norm_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Samples s = samples_of(query.input_var(0).shape, query.attributes());
    query.workspace(static_cast<size_t>(s.count * s.channels) * 4 * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const Samples s = samples_of(context.inputs[0].shape, context.attributes());
      const T *x = context.inputs[0].as<const T>(), *dy = context.inputs[3].as<const T>();
      const float* scale = context.inputs[1].as<const float>();
      const float* norms = context.inputs[2].as<const float>();
      T* dx = context.outputs[0].as<T>();
      float *dscale = context.outputs[1].as<float>(), *dbias = context.outputs[2].as<float>();
      auto* shares = static_cast<float*>(context.workspace);
      float* factors = shares + s.count * 2 * s.channels;
      return make_kernel([=](Stream&) {
#pragma omp parallel for
        for (int64_t n = 0; n < s.count; ++n) {
          const int64_t at = n * s.size(), pair = n * 2 * s.channels;
          differentiate_sample(s, x + at, scale, norms + n * s.channels, dy + at,
                               dx ? dx + at : nullptr, shares + pair, shares + pair + s.channels,
                               factors + pair);
        }
        sum_samples(s, shares, dscale);
        sum_samples(s, shares + s.channels, dbias);
      });
    });
  };
}

}  // namespace fleet
