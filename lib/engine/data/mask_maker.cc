#include "data/mask_maker.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace fleet::data {
namespace {

std::string size_text(int height, int width) {
  return std::to_string(height) + " x " + std::to_string(width);
}

[[noreturn]] void refuse_kind(const MaskFile& file, const std::string& what) {
  throw Error(ErrorCode::kUsage, "the mask has no numbers of classes: " + what, file.name,
              "store the class of each pixel: a PNG of 8 bits, with a palette or in grey");
}

// Returns the pixels that are labelled.
int64_t check_labels(const MaskFile& file, const uint8_t* labels, int64_t count) {
  int64_t unlabelled = 0;
  int highest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool none = labels[i] == kUnlabelledPixel;
    unlabelled += none ? 1 : 0;
    highest = std::max(highest, none ? 0 : static_cast<int>(labels[i]));
  }
  if (highest < file.classes) return count - unlabelled;
  throw Error(ErrorCode::kUsage,
              "the mask has the class " + std::to_string(highest) + ", and the model has " +
                  std::to_string(file.classes) + " classes",
              file.name, "correct the mask (255: not labelled), or model.num_classes");
}

}  // namespace

std::vector<int> nearest_pixels(const CropGeometry& p, bool across) {
  const int source = across ? p.source_width : p.source_height;
  const int outputs = across ? p.out_width : p.out_height;
  const int resized = across ? p.resized_width : p.resized_height;
  const int first = across ? p.resized_x : p.resized_y;
  std::vector<int> pixels(static_cast<size_t>(outputs), -1);
  if (resized == 0) {
    const double start = across ? p.x : p.y, extent = across ? p.width : p.height;
    for (int i = 0; i < outputs; ++i) {
      const auto at = static_cast<int>(std::floor(start + (i + 0.5) * extent / outputs));
      if (at >= 0 && at < source) pixels[static_cast<size_t>(i)] = at;
    }
    return pixels;
  }
  // Pillow adds up the steps.
  const double step = static_cast<double>(source) / resized;
  double place = step * 0.5;
  for (int i = 0; i < std::min(resized, first + outputs); ++i, place += step) {
    if (i < first) continue;
    pixels[static_cast<size_t>(i - first)] = std::min(static_cast<int>(place), source - 1);
  }
  return pixels;
}

bool MaskMaker::make(const MaskFile& file, const CropGeometry& geometry, uint8_t* out,
                     int64_t* labelled, std::string* why) {
  const auto fail = [&](const std::string& what) {
    *why = "its mask " + file.name + ": " + what;
    return false;
  };
  if (!png_.open(file.bytes)) {
    if (png_.is_usage()) refuse_kind(file, png_.why());
    return fail(png_.why());
  }
  if (png_.height() != geometry.source_height || png_.width() != geometry.source_width) {
    return fail("it has " + size_text(png_.height(), png_.width()) + " pixels, and the image " +
                size_text(geometry.source_height, geometry.source_width));
  }
  const std::vector<int> rows = nearest_pixels(geometry, false);
  std::vector<int> columns = nearest_pixels(geometry, true);
  if (geometry.flip) std::ranges::reverse(columns);
  const int64_t width = geometry.out_width, count = width * geometry.out_height;
  std::memset(out, kUnlabelledPixel, static_cast<size_t>(count));
  const auto inside = std::ranges::find_if(rows, [](int row) { return row >= 0; });
  auto next = static_cast<size_t>(inside - rows.begin());  // the first row of the output to write
  const int first = inside == rows.end() ? 0 : *inside;
  const int end = inside == rows.end() ? 0 : std::ranges::max(rows) + 1;
  const bool whole = png_.read(first, end, [&](int y, const uint8_t* numbers) {
    const uint8_t* made = nullptr;
    for (; next < rows.size() && rows[next] == y; ++next) {
      uint8_t* to = out + static_cast<int64_t>(next) * width;
      if (made) {
        std::memcpy(to, made, static_cast<size_t>(width));
        continue;
      }
      for (int64_t x = 0; x < width; ++x) {
        if (columns[x] >= 0) to[x] = numbers[columns[x]];
      }
      made = to;
    }
  });
  if (!whole) return fail(png_.why());
  *labelled = check_labels(file, out, count);
  return true;
}

}  // namespace fleet::data
