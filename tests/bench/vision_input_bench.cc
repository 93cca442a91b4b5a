// Exact resizing on one core: against the resize in float, of the same decoded photographs, and as
// a part of an evaluation from JPEG files. What is compared runs in turns; medians are compared.
// Links: data
//
// bench_vision_input [FOLDER [PASSES]]; FOLDER holds JPEG files; left out or "", imagenet_200.tar
// of FLEET_SHARED_DATA (../shared/data) is unpacked into the build folder. bench_vision_input
// FOLDER pixels FILE KEYS FILTER ORDER writes the pixels of an evaluation to FILE: 224 x 224 x RGB
// bytes for each image, by name. KEYS: data.eval as JSON; FILTER and ORDER: data.interpolation and
// data.pass_order.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/thread.h"
#include "data/augment.h"
#include "data/decode.h"
#include "data/exact_resize.h"
#include "data/random.h"
#include "data/resize.h"
#include "tests/bench/photographs.h"
#include "tests/bench/times.h"

namespace fleet::data {
namespace {

constexpr int kSide = 224;

struct Photograph {
  std::string file;
  std::vector<uint8_t> memory;  // decoded
  Pixels pixels;
};

std::span<const uint8_t> bytes_of(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

std::vector<Photograph> photographs(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  Decoder decoder;
  std::vector<Photograph> all;
  for (const std::string& path : paths) {
    Photograph one{.file = read_file(path), .memory = {}, .pixels = {}};
    const bool good = decoder.open(bytes_of(one.file), 3) &&
                      decoder.read(whole_image(decoder.height(), decoder.width()), &one.pixels);
    if (!good) throw Error(ErrorCode::kUsage, "damaged image: " + decoder.why(), path);
    const size_t size = size_t(one.pixels.stride) * one.pixels.height;
    one.memory.assign(one.pixels.data, one.pixels.data + size);
    one.memory.resize(size + 64);
    all.push_back(std::move(one));
    all.back().pixels.data = all.back().memory.data();
  }
  return all;
}

AugmentChain chain_of(const std::string& keys, bool train, Filter filter, PassOrder order) {
  return {ConfigTree::from_json(keys, "bench").validate(augment_schema(train)),
          train,
          {3, kSide, kSide},
          {0.485, 0.456, 0.406},
          {0.229, 0.224, 0.225},
          {.filter = filter, .passes = order}};
}

// Resizes as a worker of the pipeline does.
class Resizing {
 public:
  // set: the instruction set; "": the fastest.
  Resizing(const std::string& keys, bool train, Filter filter, const std::string& set = {},
           PassOrder order = PassOrder::kPillow13)
      : chain_(chain_of(keys, train, filter, order)),
        resizer_(filter == Filter::kFloatBilinear ? set : ""),
        exact_(filter == Filter::kFloatBilinear ? "" : set),
        out_(chain_.image().count()) {}

  void resize(const Pixels& pixels, const CropGeometry& geometry, const float* scale,
              const float* bias) {
    if (is_copy(geometry)) {
      copy_pixels(pixels, geometry, 3, scale, bias, out_.data());
    } else if (geometry.filter == Filter::kFloatBilinear) {
      resizer_.run(pixels, geometry, 3, scale, bias, out_.data());
    } else {
      exact_.run(pixels, geometry, 3, scale, bias, out_.data());
    }
  }
  void run(const Photograph& one, uint64_t key) {
    const CropGeometry geometry = geometry_of(one.pixels.height, one.pixels.width, key);
    resize(one.pixels, geometry, chain_.scale().data(), chain_.bias().data());
  }
  void evaluate(const std::string& file) {
    decode(file);
    resize(pixels_, geometry_, chain_.scale().data(), chain_.bias().data());
  }
  // 224 x 224 x RGB.
  std::string bytes(const std::string& file) {
    const float one[] = {1, 1, 1}, zero[] = {0, 0, 0};
    decode(file);
    resize(pixels_, geometry_, one, zero);
    std::string bytes;
    constexpr size_t kPlane = size_t{kSide} * kSide;
    for (size_t i = 0; i < kPlane; ++i) {
      for (int c = 0; c < 3; ++c) bytes.push_back(static_cast<char>(int(out_[c * kPlane + i])));
    }
    return bytes;
  }

 private:
  CropGeometry geometry_of(int height, int width, uint64_t key) const {
    return chain_.set_geometry(height, width, key, [] { return "bench"; });
  }
  void decode(const std::string& file) {
    bool good = decoder_.open(bytes_of(file), 3);
    if (good) {
      geometry_ = geometry_of(decoder_.height(), decoder_.width(), 0);
      good = decoder_.read(geometry_, &pixels_);
    }
    if (!good) throw Error(ErrorCode::kUsage, "damaged image: " + decoder_.why());
  }

  AugmentChain chain_;
  Decoder decoder_;
  Resizer resizer_;
  ExactResizer exact_;
  CropGeometry geometry_;
  Pixels pixels_;
  std::vector<float> out_;
};

template <typename Body>
double images_per_second(size_t count, Body body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return static_cast<double>(count) * 1000 / ms_since(start);
}

void compare_with_float(const std::vector<Photograph>& all, const char* what,
                        const std::string& keys, bool train, int passes, const std::string& set) {
  const auto sets = resize_instruction_sets();
  const bool both = std::find(sets.begin(), sets.end(), set) != sets.end();
  Resizing exact(keys, train, Filter::kBilinear, set);
  Resizing floats(keys, train, Filter::kFloatBilinear, both ? set : sets[0]);
  std::vector<double> exact_rates, float_rates, ratios;
  for (int pass = 0; pass < passes; ++pass) {
    const auto rate = [&](Resizing& by) {
      return images_per_second(all.size(), [&] {
        for (size_t i = 0; i < all.size(); ++i) by.run(all[i], sample_key(1, pass, int64_t(i)));
      });
    };
    exact_rates.push_back(rate(exact));
    float_rates.push_back(rate(floats));
    ratios.push_back(exact_rates.back() / float_rates.back());
  }
  std::printf("vision_input: resize, %s, %s: ratio %.3f (exact %.0f images/s, float by %s %.0f)\n",
              what, set.c_str(), median(ratios), median(exact_rates),
              both ? set.c_str() : sets[0].c_str(), median(float_rates));
}

int write_pixels(const std::vector<Photograph>& all, char** argv) {
  const PassOrder order =
      std::string(argv[6]) == "pillow12" ? PassOrder::kPillow12 : PassOrder::kPillow13;
  Resizing evaluation(argv[4], false, filter_named(argv[5]), {}, order);
  std::ofstream pixels(argv[3], std::ios::binary);
  for (const Photograph& one : all) pixels << evaluation.bytes(one.file);
  return pixels.good() ? 0 : 1;
}

int run(int argc, char** argv) {
  const std::string given = argc > 1 ? argv[1] : "";
  const std::string folder = given.empty() ? unpacked_photographs() : given;
  if (folder.empty()) {
    std::puts("vision_input: skipped: ../shared/data/imagenet_200.tar is not here; give a folder");
    return 0;
  }
  const int passes = argc > 2 ? std::atoi(argv[2]) : 11;
  const auto all = photographs(folder);
  if (argc > 6 && std::string(argv[2]) == "pixels") return write_pixels(all, argv);
  pin_to_cores({available_cores().back()});
  std::printf("%zu files, %d passes\n", all.size(), passes);
  const std::string centre = R"({"resize": 256})";
  const std::string random = R"({"random_resized_crop": true, "flip": true})";
  const std::vector<std::string> sets = exact_instruction_sets();
  for (const std::string& set : sets) {
    if (set == "plain" && sets.size() > 1) continue;  // this processor has better
    compare_with_float(all, "256, crop 224", centre, false, passes, set);
    compare_with_float(all, "random crop to 224", random, true, passes, set);
  }
  Resizing bicubic(centre, false, Filter::kBicubic);
  std::vector<double> rates;
  for (int pass = 0; pass < passes; ++pass) {
    rates.push_back(images_per_second(all.size(), [&] {
      for (const Photograph& one : all) bicubic.evaluate(one.file);
    }));
  }
  std::printf("vision_input: bicubic evaluation: %.1f images/s\n", median(rates));
  for (const Photograph& one : all) bicubic.run(one, 0);
  const double resizing = images_per_second(all.size(), [&] {
    for (const Photograph& one : all) bicubic.run(one, 0);
  });
  std::printf("vision_input: bicubic resize alone: %.1f images/s\n", resizing);
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
