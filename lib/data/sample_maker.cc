#include "data/sample_maker.h"

#include "base/error.h"

namespace fleet::data {

SampleMaker::SampleMaker(const Source& source, const AugmentChain& chain)
    : source_(source),
      chain_(chain),
      colours_(chain.colours()),
      unit_scale_(chain.image().channels, 1.0f / 255),
      zero_bias_(chain.image().channels, 0.0f) {}

// Raw pixels with the output's number of channels: grey is spread over three.
Pixels SampleMaker::pixels_of(const Sample& sample, int64_t index) {
  const int channels = chain_.image().channels;
  Pixels pixels{.data = sample.bytes.data(),
                .step = sample.channels,
                .stride = int64_t{sample.width} * sample.channels,
                .width = sample.width,
                .height = sample.height};
  if (sample.channels == channels) return pixels;
  if (sample.channels != 1 || channels != 3) {
    throw Error(ErrorCode::kUsage,
                "the image has " + std::to_string(sample.channels) +
                    " channels and data.image.channels is " + std::to_string(channels),
                source_.name(index), "correct data.image.channels");
  }
  spread_.resize(sample.bytes.size() * 3);
  for (size_t i = 0; i < sample.bytes.size(); ++i) {
    spread_[3 * i] = spread_[3 * i + 1] = spread_[3 * i + 2] = sample.bytes[i];
  }
  pixels.data = spread_.data();
  pixels.step = 3;
  pixels.stride *= 3;
  return pixels;
}

bool SampleMaker::make(int64_t index, uint64_t key, float* out, std::string* why) {
  const Sample sample = source_.read(index, scratch_);
  const ImageShape& image = chain_.image();
  int height = sample.height, width = sample.width;
  if (sample.encoded) {
    if (!decoder_.open(sample.bytes, image.channels)) {
      *why = decoder_.why();
      return false;
    }
    height = decoder_.height();
    width = decoder_.width();
  }
  const Placement placement = chain_.place(height, width, key, [&] { return source_.name(index); });
  Pixels pixels;
  if (!sample.encoded) {
    pixels = pixels_of(sample, index);
  } else if (!decoder_.read(placement, &pixels)) {
    *why = decoder_.why();
    return false;
  }
  const float* scale = colours_ ? unit_scale_.data() : chain_.scale().data();
  const float* bias = colours_ ? zero_bias_.data() : chain_.bias().data();
  if (is_copy(placement)) {
    copy_pixels(pixels, placement, image.channels, scale, bias, out);
  } else {
    resizer_.run(pixels, placement, image.channels, scale, bias, out);
  }
  if (colours_) {
    chain_.colour(out, key);
    chain_.normalise(out);
  }
  return true;
}

ImageShape shape_of(const Source& source, int64_t index) {
  std::vector<uint8_t> scratch;
  const Sample sample = source.read(index, scratch);
  if (!sample.encoded) return {sample.channels, sample.height, sample.width};
  Decoder decoder;
  if (!decoder.open(sample.bytes, 3)) {
    throw Error(ErrorCode::kUsage, "damaged image: " + decoder.why(), source.name(index),
                "give data.image's channels, height and width");
  }
  return {3, decoder.height(), decoder.width()};
}

}  // namespace fleet::data
