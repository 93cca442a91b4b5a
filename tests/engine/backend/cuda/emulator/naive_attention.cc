// In place of cuDNN's attention: by loops over what lies in memory, for two samples of heads of 16
// elements, so that the other cases are left to our own kernels.
#include <cmath>
#include <map>
#include <vector>

#include "backend/cuda/dnn_attention.h"
#include "backend/cuda/types.h"

namespace fleet::cuda::dnn {
namespace {

template <typename T>
class AttentionLoops {
 public:
  AttentionLoops(const Attention& a, float scale, std::map<int64_t, void*> memory)
      : a_(a), scale_(scale), memory_(std::move(memory)) {}

  void run() {
    const int64_t s = a_.tokens;
    std::vector<double> dk(a_.batch * s * a_.kv_heads * a_.size), dv(dk.size());
    for (int64_t b = 0; b < a_.batch; ++b) {
      for (int64_t h = 0; h < a_.heads; ++h) {
        for (int64_t i = 0; i < s; ++i) {
          if (a_.gradient) {
            backward(b, h, i, &dk, &dv);
          } else {
            forward(b, h, i);
          }
        }
      }
    }
    if (!a_.gradient) return;
    const int64_t row = a_.kv_heads * a_.size;
    for (int64_t t = 0; t < a_.batch * s; ++t) {
      for (int64_t e = 0; e < row; ++e) {
        at<T>(kAttentionDk)[t * a_.kv_stride + e] = rounded(dk[t * row + e]);
        at<T>(kAttentionDv)[t * a_.kv_stride + e] = rounded(dv[t * row + e]);
      }
    }
  }

 private:
  template <typename U>
  U* at(int64_t id) const {
    return static_cast<U*>(memory_.at(id));
  }
  static T rounded(double value) { return from_float<T>(static_cast<float>(value)); }
  double value(int64_t id, int64_t index) const { return to_float(at<T>(id)[index]); }

  int64_t q_index(int64_t b, int64_t h, int64_t i) const {
    return (b * a_.tokens + i) * a_.q_stride + h * a_.size;
  }
  int64_t kv_index(int64_t b, int64_t h, int64_t j) const {
    return (b * a_.tokens + j) * a_.kv_stride + h / (a_.heads / a_.kv_heads) * a_.size;
  }
  int64_t y_index(int64_t b, int64_t h, int64_t i) const {
    return ((b * a_.tokens + i) * a_.heads + h) * a_.size;
  }
  float& lse(int64_t b, int64_t h, int64_t i) const {
    return at<float>(kAttentionLse)[(b * a_.heads + h) * a_.tokens + i];
  }
  bool sees(int64_t b, int64_t i, int64_t j) const {
    if (a_.causal && j > i) return false;
    if (!a_.documents) return true;
    return at<int32_t>(kAttentionQueryDocuments)[b * a_.tokens + i] ==
           at<int32_t>(kAttentionKeyDocuments)[b * a_.tokens + j];
  }
  double dot(int64_t x, int64_t x_index, int64_t y, int64_t y_index) const {
    double sum = 0;
    for (int64_t e = 0; e < a_.size; ++e) sum += value(x, x_index + e) * value(y, y_index + e);
    return sum;
  }
  double score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return scale_ * dot(kAttentionQ, q_index(b, h, i), kAttentionK, kv_index(b, h, j));
  }

  void forward(int64_t b, int64_t h, int64_t i) {
    double sum = 0;
    std::vector<double> y(a_.size);
    for (int64_t j = 0; j < a_.tokens; ++j) {
      if (!sees(b, i, j)) continue;
      const double p = std::exp(score(b, h, i, j));
      sum += p;
      for (int64_t e = 0; e < a_.size; ++e) {
        y[e] += p * value(kAttentionV, kv_index(b, h, j) + e);
      }
    }
    for (int64_t e = 0; e < a_.size; ++e) {
      at<T>(kAttentionY)[y_index(b, h, i) + e] = rounded(y[e] / sum);
    }
    lse(b, h, i) = static_cast<float>(std::log(sum));
  }

  void backward(int64_t b, int64_t h, int64_t i, std::vector<double>* dk, std::vector<double>* dv) {
    const int64_t own = y_index(b, h, i);
    const double delta = dot(kAttentionDy, own, kAttentionY, own);
    std::vector<double> dq(a_.size);
    for (int64_t j = 0; j < a_.tokens; ++j) {
      if (!sees(b, i, j)) continue;
      const int64_t kv = kv_index(b, h, j);
      const double p = std::exp(score(b, h, i, j) - lse(b, h, i));
      const double slope = scale_ * p * (dot(kAttentionDy, own, kAttentionV, kv) - delta);
      const int64_t to =
          ((b * a_.tokens + j) * a_.kv_heads + h / (a_.heads / a_.kv_heads)) * a_.size;
      for (int64_t e = 0; e < a_.size; ++e) {
        dq[e] += slope * value(kAttentionK, kv + e);
        (*dk)[to + e] += slope * value(kAttentionQ, q_index(b, h, i) + e);
        (*dv)[to + e] += p * value(kAttentionDy, own + e);
      }
    }
    for (int64_t e = 0; e < a_.size; ++e) {
      at<T>(kAttentionDq)[q_index(b, h, i) + e] = rounded(dq[e]);
    }
  }

  const Attention a_;
  const float scale_;
  const std::map<int64_t, void*> memory_;
};

}  // namespace

bool is_supported(Device* device, const Attention& a) {
  return device && a.batch == 2 && a.size == 16;
}

size_t workspace_of(Device*, const Attention&) { return 0; }

std::unique_ptr<Kernel> make_kernel(Device&, const Attention& a, float scale,
                                    const std::vector<std::pair<int64_t, void*>>& memory, void*) {
  const std::map<int64_t, void*> by_id(memory.begin(), memory.end());
  return fleet::make_kernel([=](Stream& stream) {
    emulator::issue(stream_of(stream), [=] {
      dispatch(a.dtype, [&](auto type) { AttentionLoops<decltype(type)>(a, scale, by_id).run(); });
    });
  });
}

}  // namespace fleet::cuda::dnn
