#include "backend/cpu/channels.h"

#include <algorithm>

#include "backend/cpu/elementwise.h"
#include "base/error.h"

namespace fleet::cpu {
namespace {

constexpr int64_t kLanes = 16;  // channels that are summed in parallel

}  // namespace

Channels::Channels(const Argument& x) : data_(x.data), type_(x.dtype) {
  const Layout& layout = x.layout;
  const std::vector<int64_t>& strides = layout.strides();
  const bool blocked = layout.inner().size() == 1 && layout.inner()[0].axis == 1;
  FLEET_CHECK(!layout.is_opaque() && x.shape.rank() == 4 && (blocked || layout.inner().empty()),
              "channels in a layout " + layout.text());
  FLEET_CHECK(x.shape[2] == 1 || x.shape[3] == 1 || strides[2] == x.shape[3] * strides[3],
              "pixels apart in a layout " + layout.text());
  images_ = x.shape[0];
  channels_ = x.shape[1];
  pixels_ = x.shape[2] * x.shape[3];
  image_ = strides[0];
  step_ = x.shape[3] > 1 ? strides[3] : strides[2];
  group_ = strides[1];
  block_ = blocked ? layout.inner()[0].size : 1;
  if (!blocked && strides[1] == 1 && pixels_ > 1) block_ = channels_;  // channels last
}

template <typename T, typename Bias>
void Channels::add_as(T* data, const Bias* bias) const {
  const int64_t groups = (channels_ + block_ - 1) / block_;
#pragma omp parallel for collapse(2)
  for (int64_t n = 0; n < images_; ++n) {
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t lanes = std::min(block_, channels_ - g * block_);
      T* row = data + n * image_ + g * group_;
      for (int64_t s = 0; s < pixels_; ++s, row += step_) {
        for (int64_t lane = 0; lane < lanes; ++lane)
          row[lane] = row[lane] + bias[g * block_ + lane];
      }
    }
  }
}

template <typename T, typename Sum>
void Channels::sum_as(const T* data, Sum* sums) const {
#pragma omp parallel for
  for (int64_t first = 0; first < channels_; first += kLanes) {
    double total[kLanes] = {};
    const int64_t end = std::min(first + kLanes, channels_);
    for (int64_t n = 0; n < images_; ++n) {
      for (int64_t s = 0; s < pixels_; ++s) {
        for (int64_t c = first; c < end; ++c) {
          total[c - first] += data[n * image_ + c / block_ * group_ + s * step_ + c % block_];
        }
      }
    }
    for (int64_t c = first; c < end; ++c) sums[c] = static_cast<float>(total[c - first]);
  }
}

void Channels::add(const Argument& bias) const {
  with_loop_type(type_, [&]<typename T>(T) {
    with_loop_type(bias.dtype,
                   [&]<typename Bias>(Bias) { add_as(static_cast<T*>(data_), bias.as<Bias>()); });
  });
}

void Channels::sum(const Argument& sums) const {
  with_loop_type(type_, [&]<typename T>(T) {
    with_loop_type(sums.dtype, [&]<typename Sum>(Sum) {
      sum_as(static_cast<const T*>(data_), sums.as<Sum>());
    });
  });
}

}  // namespace fleet::cpu
