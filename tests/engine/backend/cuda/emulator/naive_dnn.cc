// In place of cuDNN: convolutions by loops over what lies in memory, so that layouts, padding and
// biases of the operations built on it are tested.
#include <vector>

#include "backend/cuda/dnn_kernel.h"
#include "backend/cuda/types.h"

namespace fleet::cuda::dnn {
namespace {

struct Memory {
  void *x, *weight, *y, *bias;
};

template <typename T>
class Loops {
 public:
  Loops(const Convolution& conv, const Memory& memory)
      : conv_(conv),
        x_(static_cast<T*>(memory.x)),
        weight_(static_cast<T*>(memory.weight)),
        y_(static_cast<T*>(memory.y)),
        bias_(static_cast<T*>(memory.bias)) {}

  void run() {
    const Shape& result = conv_.direction == Convolution::kForward ? conv_.y
                          : conv_.direction == Convolution::kData  ? conv_.x
                                                                   : conv_.weight;
    sums_.assign(result.elements(), 0);
    const Shape &y = conv_.y, &w = conv_.weight;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t k = 0; k < y[1]; ++k) {
        for (int64_t p = 0; p < y[2]; ++p) {
          for (int64_t q = 0; q < y[3]; ++q) {
            for (int64_t r = 0; r < w[2]; ++r) {
              for (int64_t s = 0; s < w[3]; ++s) tap(n, k, p, q, r, s);
            }
          }
        }
      }
    }
    T* out = conv_.direction == Convolution::kForward ? y_
             : conv_.direction == Convolution::kData  ? x_
                                                      : weight_;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const double bias = conv_.bias ? to_float(bias_[i % y[1]]) : 0;
      out[i] = from_float<T>(static_cast<float>(sums_[i] + bias));
    }
  }

 private:
  static int64_t at(const Shape& s, int64_t n, int64_t c, int64_t h, int64_t w) {
    return ((n * s[2] + h) * s[3] + w) * s[1] + c;
  }

  void tap(int64_t n, int64_t k, int64_t p, int64_t q, int64_t r, int64_t s) {
    const Window& window = conv_.window;
    const int64_t h = p * window.strides[0] - window.paddings[0] + r * window.dilations[0];
    const int64_t w = q * window.strides[1] - window.paddings[1] + s * window.dilations[1];
    if (h < 0 || w < 0 || h >= conv_.x[2] || w >= conv_.x[3]) return;
    const int64_t each = conv_.weight[1], groups = conv_.x[1] / each;
    const int64_t first = k / (conv_.y[1] / groups) * each;
    const int64_t of_y = at(conv_.y, n, k, p, q);
    for (int64_t c = 0; c < each; ++c) {
      const int64_t of_x = at(conv_.x, n, first + c, h, w), of_w = at(conv_.weight, k, c, r, s);
      if (conv_.direction == Convolution::kForward) {
        sums_[of_y] += double{to_float(x_[of_x])} * to_float(weight_[of_w]);
      } else if (conv_.direction == Convolution::kData) {
        sums_[of_x] += double{to_float(y_[of_y])} * to_float(weight_[of_w]);
      } else {
        sums_[of_w] += double{to_float(y_[of_y])} * to_float(x_[of_x]);
      }
    }
  }

  const Convolution& conv_;
  T *x_, *weight_, *y_, *bias_;
  std::vector<double> sums_;
};

}  // namespace

// As with cuDNN, a bias cannot always be added in the same pass.
bool is_supported(Device*, const Convolution& conv) { return !conv.bias || conv.y[1] % 2 == 0; }

size_t workspace_of(Device*, const Convolution&) { return 0; }

std::unique_ptr<Kernel> make_kernel(Device&, const Convolution& conv, void* x, void* weight,
                                    void* y, void* bias, void*) {
  return fleet::make_kernel([conv, memory = Memory{x, weight, y, bias}](Stream& stream) {
    emulator::issue(stream_of(stream), [=] {
      dispatch(conv.dtype, [&](auto type) { Loops<decltype(type)>(conv, memory).run(); });
    });
  });
}

}  // namespace fleet::cuda::dnn
