// Shared by the tests of data: a temporary folder, generated image files, settings from
// JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/pipeline.h"

struct jpeg_compress_struct;  // jpeglib.h

namespace fleet::data::testing {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// height x width x channels bytes. A smooth picture that depends on the seed, as JPEG keeps it
// well.
std::vector<uint8_t> picture(int height, int width, int channels, int seed = 0);

// channels 1 grey, 3 RGB, 4 CMYK as Adobe writes it (inverted).
std::string jpeg_of(const std::vector<uint8_t>& pixels, int height, int width, int channels,
                    int quality = 95, bool progressive = false);
// adjust: after libjpeg's defaults for this quality.
std::string jpeg_with(const std::vector<uint8_t>& pixels, int height, int width, int channels,
                      int quality, const std::function<void(jpeg_compress_struct&)>& adjust);
// channels 1, 3 or 4 (RGBA).
std::string png_of(const std::vector<uint8_t>& pixels, int height, int width, int channels);
// 16 bits a channel, interlaced: RGB or grey bytes as high bytes, with noise below.
std::string deep_png_of(const std::vector<uint8_t>& pixels, int height, int width,
                        int channels = 3);
// 8-bit indices into RGB colours.
std::string palette_png_of(const std::vector<uint8_t>& indices, const std::vector<uint8_t>& colours,
                           int height, int width);
std::string jpeg_picture(int height, int width, int seed = 0);

std::string gzip(const std::string& bytes);
// An IDX file of unsigned bytes.
std::string idx_of(const std::vector<int>& dims, const std::vector<uint8_t>& bytes);

void write(const std::string& path, const std::string& bytes);

// JSON (the content of "data") checked against data_schema(source).
Settings settings_of(const std::string& source, const std::string& json);

// The message of the Error that body throws; fails the test where it throws none.
std::string message_of(const std::function<void()>& body);

// A copy of a batch.
struct Copy {
  std::vector<float> images, weights, own_shares;
  std::vector<int64_t> labels, samples, other_labels;
  std::vector<uint64_t> keys;
  int64_t epoch = 0, index = 0, real = 0;
  bool operator==(const Copy&) const = default;
};
Copy copy_of(const Batch& batch);
// All that is left of the epoch.
std::vector<Copy> rest_of(InputPipeline& pipeline);

}  // namespace fleet::data::testing
