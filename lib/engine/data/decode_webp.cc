// WebP by libwebp; only the first frame of an animation. The whole image is decoded, and
// transparency is ignored, as in Pillow.
#include <webp/decode.h>
#include <webp/demux.h>

#include "data/decode_format.h"

namespace fleet::data {
namespace {

struct FreeAnimation {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

class WebP : public Decoder::Format {
 public:
  bool open(std::span<const uint8_t> bytes, int channels) override {
    bytes_ = bytes;
    grey_ = channels == 1;
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) {
      why = "the WebP header is damaged";
      return false;
    }
    width = features.width;
    height = features.height;
    animated_ = features.has_animation != 0;
    return check_size();
  }

  bool read(const CropGeometry&, Pixels* pixels) override {
    const bool done = animated_ ? read_frame() : read_image();
    if (!done) {
      why = "the WebP data are damaged, or end early";
      return false;
    }
    *pixels = finish_rgb(animated_ ? 4 : 3);
    return true;
  }

 private:
  bool read_image() {
    const int64_t stride = int64_t{3} * width;
    uint8_t* memory = reserve_rgb(3);
    return WebPDecodeRGBInto(bytes_.data(), bytes_.size(), memory,
                             static_cast<size_t>(stride * height), static_cast<int>(stride));
  }

  bool read_frame() {
    WebPAnimDecoderOptions options;
    if (!WebPAnimDecoderOptionsInit(&options)) return false;
    options.color_mode = MODE_RGBA;
    const WebPData data{bytes_.data(), bytes_.size()};
    const std::unique_ptr<WebPAnimDecoder, FreeAnimation> decoder(
        WebPAnimDecoderNew(&data, &options));
    uint8_t* frame = nullptr;
    int time = 0;
    if (!decoder || !WebPAnimDecoderGetNext(decoder.get(), &frame, &time)) return false;
    std::copy_n(frame, size_t{4} * width * height, reserve_rgb(4));
    return true;
  }

  std::span<const uint8_t> bytes_;
  bool animated_ = false;
};

}  // namespace

FLEET_IMAGE_FORMAT(WebP) {
  def.order = 30;
  def.recognizes = [](std::string_view bytes) {
    return bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP";
  };
  def.make = []() -> std::unique_ptr<Decoder::Format> { return std::make_unique<WebP>(); };
}

}  // namespace fleet::data
