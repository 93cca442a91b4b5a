#include "data/sample_maker.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "observe/trace_recorder.h"

namespace fleet::data {

SampleMaker::SampleMaker(const Source& source, const AugmentChain& chain,
                         std::shared_ptr<ImageCache> cache, std::shared_ptr<StorageState> storage,
                         bool upright)
    : source_(source),
      chain_(chain),
      viewed_(dynamic_cast<const ViewedSource*>(&source)),
      cache_(std::move(cache)),
      storage_(storage ? std::move(storage)
                       : std::make_shared<StorageState>(StorageState::Options())),
      colours_(chain.colours()),
      mirrors_(chain.depends_on_place()),
      unit_scale_(chain.image().channels, 1.0f / 255),
      byte_scale_(chain.image().channels, 1.0f),
      zero_bias_(chain.image().channels, 0.0f),
      decoder_(upright) {}

// Raw pixels with the output's number of channels: grey is copied to all three.
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
                    " channels, but data.image.channels is " + std::to_string(channels),
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

struct SampleMaker::Target {
  float* planes;
  bool* flip;  // if not null: do not mirror, but report whether to
  const std::vector<float>&scale, &bias;
};

Sample SampleMaker::read_once(int64_t index) {
  Sample sample;
  watchdog_.begin(index);
  try {
    sample = source_.read(index, scratch_);
  } catch (const Error&) {
    watchdog_.end();
    throw;
  }
  watchdog_.end();
  return sample;
}

// Whether any of some other samples can be read, first the one that was read last.
bool SampleMaker::others_answer(int64_t index) {
  constexpr int64_t kTried = 16;
  const auto answers = [&](int64_t other) {
    try {
      read_once(other);
      return true;
    } catch (const SystemError&) {
      return false;
    } catch (const Error&) {  // a file with another fault
      return true;
    }
  };
  const int64_t last = storage_->last_read(), size = source_.size();
  if (last >= 0 && last != index && answers(last)) return true;
  const int64_t step = std::max<int64_t>(size / kTried, 1);
  for (int64_t ahead = step; ahead < size; ahead += step) {
    if (answers((index + ahead) % size)) return true;
  }
  return false;
}

MaskFile SampleMaker::read_mask_once(int64_t index) {
  watchdog_.begin(index);
  try {
    const MaskFile file = source_.read_mask(index, mask_bytes_);
    watchdog_.end();
    return file;
  } catch (const Error&) {
    watchdog_.end();
    throw;
  }
}

bool SampleMaker::make_mask(int64_t index, uint64_t key, uint8_t* out, int64_t* labelled,
                            std::string* why) {
  MaskFile file;
  if (!read(
          index, [&] { file = read_mask_once(index); }, why))
    return false;
  const TraceSpan span(TraceName::kDecode, index);
  if (!mask_maker_.make(file, geometry_, out, labelled, why)) return false;
  chain_.move_mask(out, key);
  return true;
}

bool SampleMaker::read(int64_t index, const std::function<void()>& once, std::string* why) {
  const TraceSpan span(TraceName::kRead, index);
  const auto begun = std::chrono::steady_clock::now();
  ReadRetry retry(*storage_);
  for (bool done = false; !done;) {
    try {
      once();
      done = true;
    } catch (const SystemError& error) {
      *why = error.failure();
      unreadable_ = true;
      if (!retry.again(error, [&] { return others_answer(index); })) return false;
    } catch (const Error& error) {
      *why = error.failure();
      unreadable_ = false;
      return false;
    }
  }
  unreadable_ = false;
  storage_->has_read(index);
  reading_ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun).count();
  return true;
}

bool SampleMaker::decode(int64_t index, const CropGeometry& geometry, Pixels* pixels) {
  const TraceSpan span(TraceName::kDecode, index);
  if (!cache_) return decoder_.read(geometry, pixels);
  if (!decoder_.read(whole_image(geometry.source_height, geometry.source_width), pixels)) {
    return false;
  }
  if (cache_->insert(index, *pixels, chain_.image().channels)) return true;
  spdlog::info(
      "data.cache is full with {} of {} images ({}): the others are decoded each time. "
      "data.cache_memory sets its size",
      cache_->images(), source_.size(), mebibytes(static_cast<int64_t>(cache_->bytes())));
  return true;
}

bool SampleMaker::make_planes(int64_t index, uint64_t key, const Target& target, std::string* why) {
  unreadable_ = false;
  Sample sample;
  const Pixels* cached = cache_ ? cache_->find(index) : nullptr;
  if (!cached && !read(index, &sample, why)) return false;
  const ImageShape& image = chain_.image();
  int height = cached ? cached->height : sample.height;
  int width = cached ? cached->width : sample.width;
  if (!cached && sample.encoded) {
    if (!decoder_.open(sample.bytes, image.channels)) {
      *why = decoder_.why();
      return false;
    }
    height = decoder_.height();
    width = decoder_.width();
  }
  CropGeometry geometry =
      chain_.set_geometry(height, width, key, [&] { return source_.name(index); });
  if (viewed_) apply(viewed_->view(index), &geometry);
  geometry_ = geometry;
  if (target.flip) *target.flip = mirrors_ ? false : std::exchange(geometry.flip, false);
  Pixels pixels;
  if (cached) {
    pixels = *cached;
  } else if (!sample.encoded) {
    pixels = pixels_of(sample, index);
  } else if (!decode(index, geometry, &pixels)) {
    *why = decoder_.why();
    return false;
  }
  const TraceSpan span(TraceName::kAugment, index);
  const float *scale = target.scale.data(), *bias = target.bias.data();
  if (is_copy(geometry)) {
    copy_pixels(pixels, geometry, image.channels, scale, bias, target.planes);
  } else if (geometry.filter == Filter::kFloatBilinear) {
    resizer_.run(pixels, geometry, image.channels, scale, bias, target.planes);
  } else {
    exact_resizer_.run(pixels, geometry, image.channels, scale, bias, target.planes);
  }
  if (colours_) chain_.colour(target.planes, key);
  return true;
}

bool SampleMaker::make(int64_t index, uint64_t key, float* out, std::string* why) {
  const Target target{.planes = out,
                      .flip = nullptr,
                      .scale = colours_ ? unit_scale_ : chain_.scale(),
                      .bias = colours_ ? zero_bias_ : chain_.bias()};
  if (!make_planes(index, key, target, why)) return false;
  if (colours_) chain_.normalise(out);
  return true;
}

bool SampleMaker::make_bytes(int64_t index, uint64_t key, uint8_t* out, bool* flip,
                             std::string* why) {
  const ImageShape& image = chain_.image();
  planes_.resize(image.count());
  const Target target{.planes = planes_.data(),
                      .flip = flip,
                      .scale = colours_ ? unit_scale_ : byte_scale_,
                      .bias = zero_bias_};
  if (!make_planes(index, key, target, why)) return false;
  planes_to_bytes(planes_.data(), image, colours_ ? 255.0f : 1.0f, out);
  return true;
}

ImageShape first_shape(const Source& source, bool upright) {
  constexpr int64_t kTried = 100;
  std::vector<uint8_t> scratch;
  std::string why;
  for (int64_t index = 0; index < std::min(source.size(), kTried); ++index) {
    try {
      const Sample sample = read_patiently(source, index, scratch);
      if (!sample.encoded) return {sample.channels, sample.height, sample.width};
      Decoder decoder(upright);
      if (decoder.open(sample.bytes, 3)) return {3, decoder.height(), decoder.width()};
      if (why.empty()) why = decoder.why();
    } catch (const Error& error) {
      if (why.empty()) why = error.failure();
    }
  }
  throw Error(ErrorCode::kUsage, "damaged image: " + why, source.name(0),
              "set data.image's channels, height and width");
}

}  // namespace fleet::data
