// Training input on one core: JPEG files to normalised, augmented 224 x 224 images, as a reader of
// the pipeline makes them. For vision_augment.py.
// Links: data
//
// bench_vision_augment FOLDER PASSES KEYS: the median of the rates of the passes over all files.
// FOLDER: JPEG files; "": imagenet_200.tar of FLEET_SHARED_DATA. KEYS: data.augment as JSON.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "data/image_files.h"
#include "data/sample_maker.h"
#include "tests/bench/photographs.h"
#include "tests/bench/times.h"

namespace fleet::data {
namespace {

int run(int argc, char** argv) {
  const std::string given = argc > 1 ? argv[1] : "";
  const std::string folder = given.empty() ? unpacked_photographs() : given;
  if (folder.empty()) {
    std::puts(
        "vision_augment: skipped: ../shared/data/imagenet_200.tar is not here; give a folder");
    return 0;
  }
  const int passes = argc > 2 ? std::atoi(argv[2]) : 5;
  const std::string keys = argc > 3 ? argv[3] : "{}";
  std::vector<ImageFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back({entry.path(), 0});
  }
  std::ranges::sort(files, {}, &ImageFile::path);
  const auto count = std::ssize(files);
  const ImageFiles source(std::move(files));
  const AugmentChain chain(ConfigTree::from_json(keys, "bench").validate(augment_schema(true)),
                           true, {3, 224, 224}, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  SampleMaker maker(source, chain);
  std::vector<float> out(chain.image().count());
  pin_to_cores({available_cores().back()});
  std::vector<double> rates;
  for (int pass = -1; pass < passes; ++pass) {  // the first one is not counted
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < count; ++i) {
      std::string why;
      if (!maker.make(i, sample_key(1, pass, i), out.data(), &why)) {
        throw Error(ErrorCode::kUsage, why, source.name(i));
      }
    }
    if (pass >= 0) rates.push_back(static_cast<double>(count) * 1000 / ms_since(start));
  }
  std::printf("vision_augment: %.1f images/s\n", median(rates));
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
