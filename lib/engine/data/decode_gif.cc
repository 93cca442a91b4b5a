// The first frame of a GIF by giflib, on its screen, as Pillow shows it: uncovered parts have the
// transparent colour, or the first colour without one.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "data/decode_format.h"

namespace fleet::data {
namespace {

class Gif : public Decoder::Format {
 public:
  ~Gif() override { close(); }

  bool open(std::span<const uint8_t> bytes, int channels) override {
    close();
    bytes_ = bytes;
    grey_ = channels == 1;
    int error = 0;
    gif_ = DGifOpen(this, take, &error);
    if (!gif_ || !find_frame()) return fail();
    const GifImageDesc& frame = gif_->Image;
    width = std::max<int>(gif_->SWidth, frame.Left + frame.Width);
    height = std::max<int>(gif_->SHeight, frame.Top + frame.Height);
    return check_size();
  }

  bool read(const CropGeometry&, Pixels* pixels) override {
    uint8_t* memory = reserve_rgb(3);
    const std::array<uint8_t, 768> colours = palette();
    const auto paint = [&](uint8_t* to, uint8_t index) {
      std::copy_n(&colours[size_t{3} * index], 3, to);
    };
    const size_t count = size_t(width) * height;
    for (size_t i = 0; i < count; ++i)
      paint(memory + 3 * i, static_cast<uint8_t>(std::max(transparent_, 0)));
    const GifImageDesc& frame = gif_->Image;
    std::vector<GifPixelType> line(std::max(frame.Width, 1));
    for (int i = 0; i < frame.Height; ++i) {
      if (DGifGetLine(gif_, line.data(), frame.Width) != GIF_OK) return fail();
      const int y = frame.Top + row_of(i);
      uint8_t* to = memory + 3 * (int64_t{y} * width + frame.Left);
      for (int x = 0; x < frame.Width; ++x) paint(to + 3 * x, line[x]);
    }
    *pixels = finish_rgb(3);
    return true;
  }

 private:
  void close() {
    int error = 0;
    if (gif_) DGifCloseFile(gif_, &error);
    gif_ = nullptr;
    transparent_ = -1;
  }

  bool fail() {
    why = "the GIF is damaged, or ends early";
    return false;
  }

  // Advances to the first image, and reads its transparent colour on the way.
  bool find_frame() {
    for (;;) {
      GifRecordType type;
      if (DGifGetRecordType(gif_, &type) != GIF_OK || type == TERMINATE_RECORD_TYPE) return false;
      if (type == IMAGE_DESC_RECORD_TYPE) {
        return DGifGetImageDesc(gif_) == GIF_OK && gif_->Image.Width > 0 && gif_->Image.Height > 0;
      }
      if (type != EXTENSION_RECORD_TYPE) continue;
      int code = 0;
      GifByteType* block = nullptr;
      if (DGifGetExtension(gif_, &code, &block) != GIF_OK) return false;
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE && block &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent_ = control.TransparentColor;
      }
      while (block) {
        if (DGifGetExtensionNext(gif_, &block) != GIF_OK) return false;
      }
    }
  }

  // Colours missing in the palette are grey, as in Pillow.
  std::array<uint8_t, 768> palette() const {
    std::array<uint8_t, 768> colours;
    for (size_t i = 0; i < colours.size(); ++i) colours[i] = static_cast<uint8_t>(i / 3);
    const ColorMapObject* map = gif_->Image.ColorMap ? gif_->Image.ColorMap : gif_->SColorMap;
    for (int i = 0; map && i < std::min(map->ColorCount, 256); ++i) {
      const GifColorType& colour = map->Colors[i];
      const uint8_t rgb[] = {colour.Red, colour.Green, colour.Blue};
      std::copy_n(rgb, 3, &colours[size_t{3} * i]);
    }
    return colours;
  }

  // The image row of the i-th row in the file: interlaced rows come in four passes.
  int row_of(int i) const {
    if (!gif_->Image.Interlace) return i;
    static constexpr int kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
    for (int pass = 0;; ++pass) {
      const int rows = (gif_->Image.Height - kFirst[pass] + kStep[pass] - 1) / kStep[pass];
      if (i < rows || pass == 3) return kFirst[pass] + i * kStep[pass];
      i -= std::max(rows, 0);
    }
  }

  static int take(GifFileType* gif, GifByteType* to, int count) {
    auto* self = static_cast<Gif*>(gif->UserData);
    const size_t size = std::min(self->bytes_.size(), static_cast<size_t>(std::max(count, 0)));
    if (size > 0) std::memcpy(to, self->bytes_.data(), size);
    self->bytes_ = self->bytes_.subspan(size);
    return static_cast<int>(size);
  }

  std::span<const uint8_t> bytes_;
  GifFileType* gif_ = nullptr;
  int transparent_ = -1;
};

}  // namespace

FLEET_IMAGE_FORMAT(GIF) {
  def.order = 40;
  def.recognizes = [](std::string_view bytes) { return bytes.starts_with("GIF8"); };
  def.make = []() -> std::unique_ptr<Decoder::Format> { return std::make_unique<Gif>(); };
}

}  // namespace fleet::data
