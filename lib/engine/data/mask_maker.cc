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

// The highest class of these pixels, and how many have one.
struct Labels {
  int highest = 0;
  int64_t count = 0;

  void add(const uint8_t* labels, int64_t size) {
    int64_t none = 0;
    int most = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int label = labels[i];
      none += label == kUnlabelledPixel ? 1 : 0;
      most = std::max(most, label == kUnlabelledPixel ? 0 : label);
    }
    highest = std::max(highest, most);
    count += size - none;
  }
};

void check_labels(const MaskFile& file, const Labels& labels) {
  if (labels.highest < file.classes) return;
  throw Error(ErrorCode::kUsage,
              "the mask has the class " + std::to_string(labels.highest) + ", and the model has " +
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
  // A crop may not show a wrong class, so the first reader of a file looks at all of it.
  const bool looks = !file.checked || !file.checked->load(std::memory_order_relaxed);
  Labels all;
  int read = 0;
  const auto take = [&](int y, const uint8_t* numbers) {
    read = y + 1;
    if (looks) all.add(numbers, png_.width());
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
  };
  const bool whole = looks ? png_.read(0, png_.height(), take) : png_.read(first, end, take);
  if (!whole && read < end) return fail(png_.why());
  check_labels(file, all);
  if (file.checked) file.checked->store(true, std::memory_order_relaxed);
  Labels shown;
  shown.add(out, count);
  check_labels(file, shown);
  *labelled = shown.count;
  return true;
}

}  // namespace fleet::data
