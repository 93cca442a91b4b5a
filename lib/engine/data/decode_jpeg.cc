// JPEG by libjpeg-turbo.
// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>

#include "data/decode_format.h"
#include "data/jpeg_entropy.h"

namespace fleet::data {
namespace {

// libjpeg exits through longjmp on errors: the frames that it crosses must not contain objects with
// destructors.
struct DecodeErrors {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  bool too_many_scans = false;
};

[[noreturn]] void on_decode_error(j_common_ptr info) {
  std::longjmp(reinterpret_cast<DecodeErrors*>(info->err)->escape, 1);
}

// libjpeg continues after these warnings, with grey or garbage in the picture; other warnings leave
// the picture intact.
bool means_damage(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_MUST_RESYNC || code == JWRN_ARITH_BAD_CODE || code == JWRN_NOT_SEQUENTIAL;
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && means_damage(info->err->msg_code)) on_decode_error(info);
}

// A header may claim any size; a larger one is an error, not a training image.
constexpr int64_t kLargestJpeg = int64_t{1} << 28;
// Of a progressive file, which encoders make of about ten. A few bytes of a scan may go over all of
// the image: a small file could take hours.
constexpr int kMaxScans = 100;

void check_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  reinterpret_cast<DecodeErrors*>(info->err)->too_many_scans = true;
  on_decode_error(info);
}

class Jpeg : public Decoder::Format {
 public:
  Jpeg() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_decode_error;
    errors_.base.emit_message = on_message;
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = check_scans;
    info_.progress = &progress_;
  }
  ~Jpeg() override { jpeg_destroy_decompress(&info_); }

  bool open(std::span<const uint8_t> bytes, int channels) override {
    jpeg_abort_decompress(&info_);
    channels_ = channels;
    if (!read_header(bytes)) return false;
    if (int64_t{width} * height <= kLargestJpeg) return true;
    why = "its header claims " + std::to_string(width) + "x" + std::to_string(height) + " pixels";
    return false;
  }

  bool read(const CropGeometry& geometry, Pixels* pixels) override {
    if (setjmp(errors_.escape)) return fail();
    set_colours();
    const int reduced = reduction(geometry);
    info_.scale_num = 1;
    info_.scale_denom = reduced;
    jpeg_start_decompress(&info_);
    entropy_.take_over(&info_);
    const Region region = region_of(geometry);
    decode(region, reduced, pixels);
    if (info_.out_color_space == JCS_CMYK) from_cmyk(pixels);
    if (channels_ == 1 && pixels->step == 4) to_grey(pixels);
    // The rows below the region are not even entropy-decoded.
    jpeg_abort_decompress(&info_);
    return true;
  }

 private:
  bool read_header(std::span<const uint8_t> bytes) {
    if (setjmp(errors_.escape)) return fail();
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_read_header(&info_, TRUE);
    width = static_cast<int>(info_.image_width);
    height = static_cast<int>(info_.image_height);
    return true;
  }

  bool fail() {
    char text[JMSG_LENGTH_MAX];
    info_.err->format_message(reinterpret_cast<j_common_ptr>(&info_), text);
    why = errors_.too_many_scans ? "it has more than 100 scans" : text;
    errors_.too_many_scans = false;
    jpeg_abort_decompress(&info_);
    return false;
  }

  void set_colours() {
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks ? JCS_CMYK : channels_ == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
    if (channels_ == 1 && info_.jpeg_color_space == JCS_RGB) info_.out_color_space = JCS_EXT_RGBX;
  }

  // The largest reduction that keeps the box at least as large as the output.
  static int reduction(const CropGeometry& p) {
    int reduced = 1;
    while (p.scaled && reduced < 8 && p.width >= p.out_width * reduced * 2 &&
           p.height >= p.out_height * reduced * 2) {
      reduced *= 2;
    }
    return reduced;
  }

  void decode(const Region& region, int reduced, Pixels* pixels) {
    // The region in reduced pixels, then widened to whole blocks by libjpeg.
    const int out_width = static_cast<int>(info_.output_width);
    const int out_height = static_cast<int>(info_.output_height);
    const int first = std::min(region.y / reduced, out_height - 1);
    const int end = std::min((region.y + region.height + reduced - 1) / reduced, out_height);
    const int left = std::min(region.x / reduced, out_width - 1);
    const int right = std::min((region.x + region.width + reduced - 1) / reduced, out_width);
    // Chroma is interpolated from both sides, but a cut has only one: decode this many more
    // columns.
    constexpr int kBeside = 2;
    const int from = std::max(left - kBeside, 0);
    JDIMENSION x = from, across = std::min(right + kBeside, out_width) - from;
    if (static_cast<int>(across) < out_width) jpeg_crop_scanline(&info_, &x, &across);

    const int step = info_.output_components;
    const int64_t stride = (int64_t{across} * step + 63) / 64 * 64;
    uint8_t* memory = memory_.reserve(stride * (end - first));
    if (first > 0) jpeg_skip_scanlines(&info_, first);
    for (int row = first; row < end;) {
      JSAMPROW rows[4];
      const int count = std::min(4, end - row);
      for (int i = 0; i < count; ++i) rows[i] = memory + (row - first + i) * stride;
      row += static_cast<int>(jpeg_read_scanlines(&info_, rows, count));
    }
    *pixels = {.data = memory,
               .step = step,
               .stride = stride,
               .x = static_cast<int>(x),
               .y = first,
               .width = static_cast<int>(across),
               .height = end - first,
               .reduced = reduced};
  }

  // Adobe writes inks inverted (255: none); others may not.
  void from_cmyk(const Pixels* pixels) {
    const int flip = info_.saw_Adobe_marker ? 0 : 255;
    auto* base = const_cast<uint8_t*>(pixels->data);
    for (int y = 0; y < pixels->height; ++y) {
      uint8_t* p = base + y * pixels->stride;
      for (int x = 0; x < pixels->width; ++x, p += 4) {
        const int black = p[3] ^ flip;
        for (int c = 0; c < 3; ++c) p[c] = static_cast<uint8_t>((p[c] ^ flip) * black / 255);
      }
    }
  }

  // In place, for formats that libjpeg cannot convert to grey.
  void to_grey(Pixels* pixels) {
    auto* base = const_cast<uint8_t*>(pixels->data);
    for (int y = 0; y < pixels->height; ++y) {
      uint8_t* row = base + y * pixels->stride;
      for (int x = 0; x < pixels->width; ++x) {
        const uint8_t* p = row + 4 * x;
        row[x] = static_cast<uint8_t>((19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 32768) >> 16);
      }
    }
    pixels->step = 1;
  }

  jpeg_decompress_struct info_{};
  DecodeErrors errors_{};
  jpeg_progress_mgr progress_{};
  JpegEntropy entropy_;
  PixelMemory memory_;
  int channels_ = 3;
};

}  // namespace

FLEET_IMAGE_FORMAT(JPEG) {
  def.order = 10;
  def.recognizes = [](std::string_view bytes) { return bytes.starts_with("\xff\xd8"); };
  def.make = []() -> std::unique_ptr<Decoder::Format> { return std::make_unique<Jpeg>(); };
}

}  // namespace fleet::data
