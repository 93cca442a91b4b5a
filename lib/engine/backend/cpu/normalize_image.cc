#include <array>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct Rows {
  const uint8_t* pixels;
  const uint8_t* flip;  // null: none
  void* image;
  int64_t samples, channels, height, width, step;
  std::array<float, 3> scale, bias;
};

// Writes one plane at a time; its pixels stay in the cache for the next one.
template <typename T>
void run(const Rows& r) {
#pragma omp parallel for
  for (int64_t n = 0; n < r.samples; ++n) {
    const bool flip = r.flip && r.flip[n] != 0;
    T* to = static_cast<T*>(r.image) + n * r.channels * r.height * r.width;
    for (int64_t c = 0; c < r.channels; ++c) {
      const float scale = r.scale[c], bias = r.bias[c];
      for (int64_t h = 0; h < r.height; ++h, to += r.width) {
        const uint8_t* from = r.pixels + (n * r.height + h) * r.width * r.step + c;
        const int64_t first = flip ? r.width - 1 : 0, stride = flip ? -r.step : r.step;
        from += first * r.step;
        for (int64_t w = 0; w < r.width; ++w) {
          to[w] = static_cast<T>(static_cast<float>(from[w * stride]) * scale + bias);
        }
      }
    }
  }
}

}  // namespace

// The reference for other backends. On the CPU itself, the input pipeline normalizes while it
// resizes.
FLEET_KERNEL(cpu, normalize_image) {
  def.dtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  def.create = [](KernelContext& context) {
    const Argument &pixels = context.inputs[0], &image = context.outputs[0];
    Rows rows{.pixels = pixels.as<uint8_t>(),
              .flip = context.inputs.size() > 1 ? context.inputs[1].as<uint8_t>() : nullptr,
              .image = image.data,
              .samples = image.shape[0],
              .channels = image.shape[1],
              .height = image.shape[2],
              .width = image.shape[3],
              .step = pixels.shape[3]};
    const auto& mean = context.attributes().numbers("mean");
    const auto& deviation = context.attributes().numbers("std");
    for (size_t c = 0; c < mean.size(); ++c) {
      rows.scale[c] = static_cast<float>(1 / (255 * deviation[c]));
      rows.bias[c] = static_cast<float>(-mean[c] / deviation[c]);
    }
    return cpu::with_float_type(
        image.dtype, [&]<typename T>(T) { return make_kernel([rows](Stream&) { run<T>(rows); }); });
  };
}

}  // namespace fleet
