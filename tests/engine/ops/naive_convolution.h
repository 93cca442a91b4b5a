// A convolution as its definition reads, in double.
#pragma once

#include "tests/engine/ops/op_check.h"

namespace fleet {

struct NaiveConvolution {
  Shape x, weight;
  std::vector<int64_t> strides, paddings, dilations;  // paddings: a pair, or with the ends
  int64_t groups;

  Shape y() const {
    Shape y{x[0], weight[0], 0, 0};
    for (int d = 2; d < 4; ++d) {
      const int64_t end = paddings[paddings.size() == 4 ? d : d - 2];
      const int64_t padded = x[d] + paddings[d - 2] + end;
      y[d] = (padded - dilations[d - 2] * (weight[d] - 1) - 1) / strides[d - 2] + 1;
    }
    return y;
  }

  // Calls body(index in x, in weight, in y) for every product there is.
  template <typename F>
  void each_product(F body) const {
    const Shape out = y();
    const int64_t outputs = weight[0] / groups;
    for (int64_t n = 0; n < x[0]; ++n) {
      for (int64_t o = 0; o < weight[0]; ++o) {
        for (int64_t i = 0; i < weight[1]; ++i) {
          const int64_t c = o / outputs * weight[1] + i;
          for (int64_t kh = 0; kh < weight[2]; ++kh) {
            for (int64_t kw = 0; kw < weight[3]; ++kw) {
              for (int64_t oh = 0; oh < out[2]; ++oh) {
                const int64_t h = oh * strides[0] - paddings[0] + kh * dilations[0];
                if (h < 0 || h >= x[2]) continue;
                for (int64_t ow = 0; ow < out[3]; ++ow) {
                  const int64_t w = ow * strides[1] - paddings[1] + kw * dilations[1];
                  if (w < 0 || w >= x[3]) continue;
                  body(((n * x[1] + c) * x[2] + h) * x[3] + w,
                       ((o * weight[1] + i) * weight[2] + kh) * weight[3] + kw,
                       ((n * out[1] + o) * out[2] + oh) * out[3] + ow);
                }
              }
            }
          }
        }
      }
    }
  }
};

// y[n, c, ...] += bias[c], where there is one.
inline void add_bias(Values& y, const Shape& shape, const Values& bias) {
  const int64_t pixels = shape[2] * shape[3];
  for (size_t k = 0; k < y.size() && !bias.empty(); ++k) y[k] += bias[k / pixels % shape[1]];
}

inline Values naive_convolution(const NaiveConvolution& conv, const Values& x, const Values& weight,
                                const Values& bias) {
  Values y(conv.y().elements());
  conv.each_product([&](int64_t in, int64_t w, int64_t out) { y[out] += x[in] * weight[w]; });
  add_bias(y, conv.y(), bias);
  return y;
}

}  // namespace fleet
