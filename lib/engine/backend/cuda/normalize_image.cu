#include "backend/cuda/layouts.h"
#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

constexpr int kChannels = 3;

struct Images {
  const uint8_t *pixels, *flip;  // flip: null: none
  int64_t count;                 // pixels of all images
  int height, width, step;       // step: bytes per pixel
  int channels, stored;          // stored: including padding
  float scale[kChannels], bias[kChannels];
};

// One thread per pixel: it reads the pixel's bytes at once and writes its channels, followed by
// zeros, at once.
template <int step, int stored, typename T>
__global__ void normalize(Images images, T* image) {
  const int64_t i = cuda::thread_index();
  if (i >= images.count) return;
  int64_t source = i;
  if (images.flip) {
    const int64_t row = cuda::quotient(i, images.width);
    if (images.flip[cuda::quotient(row, images.height)] != 0) {
      const int64_t column = i - row * images.width;
      source = row * images.width + images.width - 1 - column;
    }
  }
  const auto bytes = cuda::load_pack<step>(images.pixels, source * step);
  cuda::Pack<float, stored> values;
#pragma unroll
  for (int c = 0; c < stored; ++c) {
    values.at[c] = c < images.channels && c < step
                       ? static_cast<float>(bytes.at[c]) * images.scale[c] + images.bias[c]
                       : 0.0f;
  }
  cuda::store_floats<stored>(image, i * stored, values);
}

template <typename T>
void run(const Images& images, T* image, cudaStream_t stream) {
  const bool four = images.stored == 4;
  const auto kernel = images.step == 1 ? (four ? normalize<1, 4, T> : normalize<1, 8, T>)
                                       : (four ? normalize<4, 4, T> : normalize<4, 8, T>);
  cuda::launch(kernel, cuda::blocks_for(images.count), cuda::kBlock, 0, stream, images, image);
}

}  // namespace

// Writes the image in the layout of its first convolution: channels innermost, padded.
FLEET_KERNEL(cuda, normalize_image) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Var& image = query.output_var(0);
    query.give(0, cuda::channels_last(
                      image.shape, cuda::channel_block(image.shape[1], /*groups=*/1, image.dtype)));
  };
  def.create = [](KernelContext& context) {
    const Argument pixels = context.inputs[0], image = context.outputs[0];
    const auto& mean = context.attributes().numbers("mean");
    const auto& deviation = context.attributes().numbers("std");
    Images images{
        .pixels = pixels.as<const uint8_t>(),
        .flip = context.inputs.size() > 1 ? context.inputs[1].as<const uint8_t>() : nullptr,
        .count = image.shape[0] * image.shape[2] * image.shape[3],
        .height = static_cast<int>(image.shape[2]),
        .width = static_cast<int>(image.shape[3]),
        .step = static_cast<int>(pixels.shape[3]),
        .channels = static_cast<int>(image.shape[1]),
        .stored = static_cast<int>(image.layout.padded()[1])};
    FLEET_CHECK(images.stored == 4 || images.stored == 8,
                "an image padded to " + std::to_string(images.stored) + " channels");
    for (size_t c = 0; c < mean.size(); ++c) {
      images.scale[c] = static_cast<float>(1 / (255 * deviation[c]));
      images.bias[c] = static_cast<float>(-mean[c] / deviation[c]);
    }
    return cuda::dispatch(image.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel(
          [=](Stream& stream) { run(images, image.as<T>(), cuda::stream_of(stream)); });
    });
  };
}

}  // namespace fleet
