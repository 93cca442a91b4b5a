// PNG by libpng. The whole image is decoded: PNG rows cannot be skipped.
#include <png.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "data/decode_format.h"

namespace fleet::data {
namespace {

constexpr size_t kMaxMemory = 8 << 20;  // bytes of one allocation: a row has less

class Png : public Decoder::Format {
 public:
  ~Png() override { close(); }

  bool open(std::span<const uint8_t> bytes, int channels) override {
    close();
    bytes_ = bytes;
    png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, on_warning, nullptr,
                                    allocate, release);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) throw std::bad_alloc();
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, kLargestSide, kLargestSide);
    // Nobody reads the texts, of which each may take 30 ms to decompress.
    png_set_chunk_cache_max(png_, 8);
    png_set_chunk_malloc_max(png_, kMaxMemory);
    png_read_info(png_, info_);
    set_colours(channels);
    width = static_cast<int>(png_get_image_width(png_, info_));
    height = static_cast<int>(png_get_image_height(png_, info_));
    return true;
  }

  bool read(const CropGeometry&, Pixels* pixels) override {
    const int step = step_;
    const int64_t stride = static_cast<int64_t>(png_get_rowbytes(png_, info_));
    uint8_t* memory = grey_ ? reserve_rgb(step) : memory_.reserve(stride * height);
    rows_.resize(height);
    for (int y = 0; y < height; ++y) rows_[y] = memory + y * stride;
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    *pixels =
        grey_
            ? finish_rgb(step)
            : Pixels{
                  .data = memory, .step = step, .stride = stride, .width = width, .height = height};
    return true;
  }

 private:
  void close() {
    if (png_) png_destroy_read_struct(&png_, &info_, nullptr);
    png_ = nullptr;
    info_ = nullptr;
  }

  // Converts grey content to 8-bit grey if that is wanted, other content to RGB and one unused
  // byte. libpng's own conversion from RGB to grey would depend on a gamma that the file may name.
  void set_colours(int channels) {
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    const bool colour = png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR;
    grey_ = channels == 1 && colour;
    step_ = channels == 1 && !colour ? 1 : 4;
    if (step_ == 4) {
      if (!colour) png_set_gray_to_rgb(png_);
      png_set_filler(png_, 0, PNG_FILLER_AFTER);
    }
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  // libpng takes a chunk's memory before its bytes have come, and only warns where a limit of its
  // own is exceeded.
  static png_voidp allocate(png_structp, png_alloc_size_t size) {
    return size > kMaxMemory ? nullptr : std::malloc(size);
  }
  static void release(png_structp, png_voidp memory) { std::free(memory); }

  static void on_error(png_structp png, png_const_charp text) {
    static_cast<Png*>(png_get_error_ptr(png))->why = text;
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, size_t count) {
    auto* self = static_cast<Png*>(png_get_io_ptr(png));
    if (count > self->bytes_.size()) png_error(png, "the file ends early");
    std::memcpy(to, self->bytes_.data(), count);
    self->bytes_ = self->bytes_.subspan(count);
  }

  std::span<const uint8_t> bytes_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int step_ = 4;
  PixelMemory memory_;
  std::vector<png_bytep> rows_;
};

}  // namespace

FLEET_IMAGE_FORMAT(PNG) {
  def.order = 20;
  def.recognizes = [](std::string_view bytes) { return bytes.starts_with("\x89PNG"); };
  def.make = []() -> std::unique_ptr<Decoder::Format> { return std::make_unique<Png>(); };
}

}  // namespace fleet::data
