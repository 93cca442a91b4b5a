// The first page of a TIFF by libtiff, upright, as Pillow shows it. 16-bit samples become 8-bit
// ones.
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/decode_format.h"
#include "data/exif.h"

namespace fleet::data {
namespace {

class Tiff : public Decoder::Format {
 public:
  ~Tiff() override { close(); }

  bool open(std::span<const uint8_t> bytes, int channels) override {
    close();
    bytes_ = bytes;
    at_ = 0;
    grey_ = channels == 1;
    why.clear();
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, this);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, nullptr);
    // "m": libtiff must not ask for a mapping.
    tiff_ = TIFFClientOpenExt("image", "rm", this, take, refuse, seek, keep, size, nullptr, nullptr,
                              options);
    TIFFOpenOptionsFree(options);
    uint32_t columns = 0, rows = 0;
    if (!tiff_ || !TIFFGetField(tiff_, TIFFTAG_IMAGEWIDTH, &columns) ||
        !TIFFGetField(tiff_, TIFFTAG_IMAGELENGTH, &rows)) {
      return fail();
    }
    width = static_cast<int>(std::min<uint32_t>(columns, kLargestSide + 1));
    height = static_cast<int>(std::min<uint32_t>(rows, kLargestSide + 1));
    if (!check_size()) return false;
    char message[1024] = "";
    if (!TIFFRGBAImageOK(tiff_, message)) return fail(message);
    set_orientation();
    return true;
  }

  bool read(const CropGeometry&, Pixels* pixels) override {
    if (on_its_side(orientation_)) std::swap(width, height);  // as stored
    uint8_t* memory = reserve_rgb(4);
    ignore_alpha();
    const bool good =
        TIFFReadRGBAImageOriented(tiff_, width, height, reinterpret_cast<uint32_t*>(memory),
                                  ORIENTATION_TOPLEFT, 1 /* stop at damage */) == 1;
    if (good) *pixels = finish_rgb(4);
    if (on_its_side(orientation_)) std::swap(width, height);
    if (!good) return fail();
    if (orientation_ != 1) turn_upright(orientation_, &turned_, pixels);
    return true;
  }

 private:
  void close() {
    if (tiff_) TIFFClose(tiff_);
    tiff_ = nullptr;
  }

  bool fail(const std::string& reason = "") {
    if (!reason.empty()) why = reason;
    why = "the TIFF is damaged, or of a kind that is not read" + (why.empty() ? "" : ": " + why);
    return false;
  }

  // libtiff mirrors pixels, but does not turn them: they are read as stored.
  void set_orientation() {
    uint16_t noted = 1;
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_ORIENTATION, &noted);
    orientation_ = noted >= 1 && noted <= 8 ? noted : 1;
    TIFFSetField(tiff_, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    if (on_its_side(orientation_)) std::swap(width, height);
  }

  // libtiff would multiply colours with an alpha channel; a channel without a meaning is dropped.
  void ignore_alpha() {
    uint16_t count = 0, *kinds = nullptr;
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_EXTRASAMPLES, &count, &kinds);
    std::vector<uint16_t> none(count, EXTRASAMPLE_UNSPECIFIED);
    if (count > 0) TIFFSetField(tiff_, TIFFTAG_EXTRASAMPLES, count, none.data());
  }

  static tmsize_t take(thandle_t self, void* to, tmsize_t count) {
    auto& tiff = *static_cast<Tiff*>(self);
    const uint64_t left = tiff.bytes_.size() - std::min<uint64_t>(tiff.at_, tiff.bytes_.size());
    const uint64_t size = std::min<uint64_t>(left, count);
    if (size > 0) std::memcpy(to, tiff.bytes_.data() + tiff.at_, size);
    tiff.at_ += size;
    return static_cast<tmsize_t>(size);
  }
  static tmsize_t refuse(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t seek(thandle_t self, toff_t offset, int from) {
    auto& tiff = *static_cast<Tiff*>(self);
    if (from == SEEK_CUR) offset += tiff.at_;
    if (from == SEEK_END) offset += tiff.bytes_.size();
    return tiff.at_ = offset;
  }
  static int keep(thandle_t) { return 0; }
  static toff_t size(thandle_t self) { return static_cast<Tiff*>(self)->bytes_.size(); }

  static int on_error(TIFF*, void* self, const char* /*module*/, const char* format,
                      va_list values) {
    char text[256];
    std::vsnprintf(text, sizeof text, format, values);
    std::string& why = static_cast<Tiff*>(self)->why;
    if (why.empty()) why = text;
    return 1;
  }
  static int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

  std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
  TIFF* tiff_ = nullptr;
  int orientation_ = 1;
  std::vector<uint8_t> turned_;
};

}  // namespace

FLEET_IMAGE_FORMAT(TIFF) {
  def.order = 60;
  def.recognizes = [](std::string_view bytes) {
    using namespace std::string_view_literals;
    return bytes.starts_with("II*\0"sv) || bytes.starts_with("MM\0*"sv) ||
           bytes.starts_with("II+\0"sv) || bytes.starts_with("MM\0+"sv);
  };
  def.make = []() -> std::unique_ptr<Decoder::Format> { return std::make_unique<Tiff>(); };
}

}  // namespace fleet::data
