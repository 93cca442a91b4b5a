#include "data/thumbnail.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "data/decode.h"
#include "data/encode_image.h"
#include "data/resize.h"

namespace fleet::data {
namespace {

constexpr int kThumbnailQuality = 75;

bool gives_images(const Source& source) {
  return std::ranges::any_of(source.columns(),
                             [](const Column& column) { return column.name == "image"; });
}

CropGeometry shrunk(int height, int width, int side) {
  CropGeometry geometry = whole_image(height, width);
  const double factor = std::min(1.0, static_cast<double>(side) / std::max(height, width));
  const auto length = [&](int given) {
    return std::max(1, static_cast<int>(std::lround(given * factor)));
  };
  geometry.out_height = length(height);
  geometry.out_width = length(width);
  geometry.scaled = true;
  return geometry;
}

std::vector<uint8_t> interleaved(const std::vector<float>& planes, size_t plane, int channels) {
  std::vector<uint8_t> pixels(planes.size());
  for (int c = 0; c < channels; ++c) {
    for (size_t i = 0; i < plane; ++i) {
      const float value = std::clamp(planes[c * plane + i], 0.0F, 255.0F);
      pixels[i * channels + c] = static_cast<uint8_t>(std::lround(value));
    }
  }
  return pixels;
}

// In red, so that the picture can still be seen.
void paint_marks(const CropGeometry& geometry, const MarkedPixel& is_marked,
                 std::vector<uint8_t>* pixels) {
  for (int y = 0; y < geometry.out_height; ++y) {
    const double row = (y + 0.5) * geometry.source_height / geometry.out_height;
    for (int x = 0; x < geometry.out_width; ++x) {
      const double column = (x + 0.5) * geometry.source_width / geometry.out_width;
      if (!is_marked(geometry.source_height, geometry.source_width, row, column)) continue;
      uint8_t* own = pixels->data() + (size_t(y) * geometry.out_width + x) * 3;
      own[0] = static_cast<uint8_t>(own[0] / 4 + 191);
      own[1] /= 4;
      own[2] /= 4;
    }
  }
}

std::vector<uint8_t> in_colour(const std::vector<uint8_t>& grey) {
  std::vector<uint8_t> pixels;
  for (const uint8_t value : grey) pixels.insert(pixels.end(), {value, value, value});
  return pixels;
}

std::string made_thumbnail(const Sample& sample, int side, bool upright,
                           const MarkedPixel& is_marked) {
  const int channels = sample.encoded ? 3 : sample.channels;
  if (channels != 1 && channels != 3) return "";
  Decoder decoder(upright);
  Pixels pixels{.data = sample.bytes.data(),
                .step = sample.channels,
                .stride = int64_t{sample.width} * sample.channels,
                .width = sample.width,
                .height = sample.height};
  CropGeometry geometry;
  // Rows are read beyond their end (struct Pixels).
  std::vector<uint8_t> padded;
  if (sample.encoded) {
    if (!decoder.open(sample.bytes, channels)) return "";
    geometry = shrunk(decoder.height(), decoder.width(), side);
    if (!decoder.read(geometry, &pixels)) return "";
  } else {
    padded.assign(sample.bytes.begin(), sample.bytes.end());
    padded.resize(padded.size() + 64);
    pixels.data = padded.data();
    geometry = shrunk(sample.height, sample.width, side);
  }
  const size_t plane = size_t(geometry.out_height) * geometry.out_width;
  std::vector<float> planes(plane * channels);
  const std::vector<float> scale(channels, 1), bias(channels, 0);
  if (is_copy(geometry) && pixels.reduced == 1) {
    copy_pixels(pixels, geometry, channels, scale.data(), bias.data(), planes.data());
  } else {
    Resizer().run(pixels, geometry, channels, scale.data(), bias.data(), planes.data());
  }
  std::vector<uint8_t> small = interleaved(planes, plane, channels);
  if (is_marked && channels == 1) small = in_colour(small);
  if (is_marked) paint_marks(geometry, is_marked, &small);
  return encode_jpeg(small, geometry.out_height, geometry.out_width, is_marked ? 3 : channels,
                     kThumbnailQuality);
}

}  // namespace

std::string thumbnail(const Source& source, int64_t index, int side, bool upright,
                      const MarkedPixel& is_marked) {
  if (!gives_images(source)) return "";
  try {
    std::vector<uint8_t> scratch;
    return made_thumbnail(source.read(index, scratch), side, upright, is_marked);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace fleet::data
