#include "data/index_png.h"

#include <png.h>

#include <cstring>
#include <new>
#include <vector>

namespace fleet::data {

struct IndexPng::Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const uint8_t> bytes;
  std::string* why = nullptr;
  bool interlaced = false;
  std::vector<uint8_t> pixels;
  std::vector<png_bytep> rows;

  static void on_error(png_structp png, png_const_charp text) {
    *static_cast<Reader*>(png_get_error_ptr(png))->why = text;
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, size_t count) {
    auto* self = static_cast<Reader*>(png_get_io_ptr(png));
    if (count > self->bytes.size()) png_error(png, "the file ends early");
    std::memcpy(to, self->bytes.data(), count);
    self->bytes = self->bytes.subspan(count);
  }
};

void IndexPng::close() {
  if (!reader_) return;
  if (reader_->png) png_destroy_read_struct(&reader_->png, &reader_->info, nullptr);
  delete reader_;
  reader_ = nullptr;
}

bool IndexPng::refuse(const std::string& what) {
  why_ = what;
  is_usage_ = true;
  return false;
}

bool IndexPng::open(std::span<const uint8_t> bytes) {
  constexpr png_uint_32 kLargestSide = 1 << 14;
  close();
  is_usage_ = false;
  why_.clear();
  if (bytes.empty()) {  // as of images
    why_ = "the file is empty";
    return false;
  }
  constexpr size_t kSignature = 8;
  if (bytes.size() < kSignature || png_sig_cmp(bytes.data(), 0, kSignature) != 0) {
    return refuse("it is not a PNG file");
  }
  reader_ = new Reader;
  reader_->bytes = bytes;
  reader_->why = &why_;
  reader_->png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, reader_, Reader::on_error, Reader::on_warning);
  reader_->info = reader_->png ? png_create_info_struct(reader_->png) : nullptr;
  if (!reader_->info) throw std::bad_alloc();
  png_structp png = reader_->png;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, reader_, Reader::on_read);
  png_set_user_limits(png, kLargestSide, kLargestSide);
  png_set_crc_action(png, PNG_CRC_DEFAULT, PNG_CRC_QUIET_USE);
  png_read_info(png, reader_->info);
  const int colour = png_get_color_type(png, reader_->info);
  const int depth = png_get_bit_depth(png, reader_->info);
  if (colour != PNG_COLOR_TYPE_PALETTE && colour != PNG_COLOR_TYPE_GRAY) {
    return refuse("it has " + std::to_string(png_get_channels(png, reader_->info)) +
                  " channels of colours");
  }
  if (depth > 8) return refuse("it has " + std::to_string(depth) + " bits a pixel");
  png_set_packing(png);
  reader_->interlaced = png_set_interlace_handling(png) > 1;
  png_read_update_info(png, reader_->info);
  width_ = static_cast<int>(png_get_image_width(png, reader_->info));
  height_ = static_cast<int>(png_get_image_height(png, reader_->info));
  return true;
}

bool IndexPng::read(int first, int end,
                    const std::function<void(int y, const uint8_t* numbers)>& row) {
  Reader& reader = *reader_;
  const auto width = static_cast<size_t>(width_);
  const size_t kept = reader.interlaced ? static_cast<size_t>(height_) : 1;
  reader.pixels.resize(kept * width);
  reader.rows.resize(kept);
  for (size_t y = 0; y < kept; ++y) reader.rows[y] = reader.pixels.data() + y * width;
  if (setjmp(png_jmpbuf(reader.png))) return false;
  if (reader.interlaced) png_read_image(reader.png, reader.rows.data());
  for (int y = 0; y < end; ++y) {
    if (!reader.interlaced) png_read_row(reader.png, reader.pixels.data(), nullptr);
    if (y >= first) row(y, reader.rows[reader.interlaced ? static_cast<size_t>(y) : 0]);
  }
  return true;
}

}  // namespace fleet::data
