// JPEG to a 224x224 random resized crop, on one core, against plain full decode of the same files
// by libjpeg-turbo. Both are run in turns, one pass over all files each; medians are compared.
// Links: data
// Libraries: JPEG::JPEG
//
// bench_jpeg [FOLDER [PASSES]]; FOLDER holds JPEG files; left out, imagenet_200.tar
// of FLEET_SHARED_DATA (../shared/data) is unpacked into the build folder.
// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/thread.h"
#include "data/augment.h"
#include "data/decode.h"
#include "data/random.h"
#include "data/resize.h"
#include "tests/bench/photographs.h"
#include "tests/bench/times.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> load(const std::string& folder) {
  std::vector<std::string> paths, files;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) files.push_back(read_file(path));
  return files;
}

// The peer: every pixel, RGB, libjpeg-turbo's defaults, one decompressor for all files.
class FullDecode {
 public:
  FullDecode() {
    info_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&info_);
  }
  ~FullDecode() { jpeg_destroy_decompress(&info_); }
  void run(const std::string& file) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    const size_t stride = size_t{info_.output_width} * 3;
    pixels_.resize(std::max(pixels_.size(), stride * info_.output_height));
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW rows[4];
      for (size_t i = 0; i < 4; ++i) {
        rows[i] =
            &pixels_[std::min(info_.output_scanline + i, info_.output_height - size_t{1}) * stride];
      }
      jpeg_read_scanlines(&info_, rows, 4);
    }
    jpeg_finish_decompress(&info_);
  }

 private:
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::vector<uint8_t> pixels_;
};

// Ours: what a worker of the pipeline does with one sample.
class CropDecode {
 public:
  CropDecode()
      : chain_(settings(), true, {3, 224, 224}, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}) {
    out_.resize(chain_.image().count());
  }
  void run(const std::string& file, uint64_t key) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
    Pixels pixels;
    bool good = decoder_.open({bytes, file.size()}, 3);
    if (good) {
      const CropGeometry geometry =
          chain_.set_geometry(decoder_.height(), decoder_.width(), key, [] { return "bench"; });
      good = decoder_.read(geometry, &pixels);
      if (good) {
        resizer_.run(pixels, geometry, 3, chain_.scale().data(), chain_.bias().data(), out_.data());
      }
    }
    if (!good) throw Error(ErrorCode::kUsage, "damaged image: " + decoder_.why());
  }

 private:
  static Settings settings() {
    ConfigTree tree =
        ConfigTree::from_json(R"({"random_resized_crop": true, "flip": true})", "bench");
    return tree.validate(augment_schema(true));
  }
  AugmentChain chain_;
  Decoder decoder_;
  Resizer resizer_;
  std::vector<float> out_;
};

template <typename Body>
double rate_of(size_t count, Body body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(count) / took.count();
}

int run(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : unpacked_photographs();
  if (folder.empty()) {
    std::puts("jpeg: skipped: ../shared/data/imagenet_200.tar is not here; give a folder of JPEGs");
    return 0;
  }
  const int passes = argc > 2 ? std::atoi(argv[2]) : 11;
  const auto files = load(folder);
  pin_to_cores({available_cores().back()});
  FullDecode full;
  CropDecode crop;
  std::vector<double> full_rates, crop_rates, ratios;
  for (int pass = 0; pass < passes; ++pass) {
    full_rates.push_back(rate_of(files.size(), [&] {
      for (const std::string& file : files) full.run(file);
    }));
    crop_rates.push_back(rate_of(files.size(), [&] {
      for (size_t i = 0; i < files.size(); ++i) crop.run(files[i], sample_key(1, pass, i));
    }));
    ratios.push_back(crop_rates.back() / full_rates.back());
  }
  std::printf("%zu files, %d passes, resize by %s\n", files.size(), passes,
              resize_instruction_sets()[0].c_str());
  std::printf("jpeg: ratio %.3f (ours %.0f images/s, full-decode %.0f images/s)\n", median(ratios),
              median(crop_rates), median(full_rates));
  return 0;
}

}  // namespace
}  // namespace fleet::data

int main(int argc, char** argv) {
  try {
    return fleet::data::run(argc, argv);
  } catch (const fleet::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return fleet::exit_code_for(error.code());
  }
}
