// Training input on one core: JPEG files with PNG masks to normalised images and masks, 480 x 480,
// by torchvision's recipe, as a reader of the pipeline makes them. For vision_segmentation.py.
// Links: data
//
// bench_vision_segmentation FOLDER PASSES: the median of the rates of the passes over all pairs of
// FOLDER/images and FOLDER/masks.
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "data/open_source.h"
#include "data/sample_maker.h"
#include "tests/bench/times.h"

namespace fleet::data {
namespace {

constexpr int kSide = 480;

int run(int argc, char** argv) {
  if (argc < 2) {
    std::puts("vision_segmentation: give a folder with images and masks");
    return 0;
  }
  const int passes = argc > 2 ? std::atoi(argv[2]) : 3;
  const Settings data =
      ConfigTree::from_json(R"({"source": "image_masks", "train": {"folder": ")" +
                                std::string(argv[1]) +
                                R"("}, "augment": {"random_resize": [260, 1040], "flip": true}})",
                            "bench")
          .validate(data_schema("image_masks"));
  const auto source = open_split(data, true, true, {.classes = 255});
  const AugmentChain chain(data.section("augment"), true, {3, kSide, kSide}, {0.485, 0.456, 0.406},
                           {0.229, 0.224, 0.225});
  SampleMaker maker(*source, chain);
  std::vector<float> image(chain.image().count());
  std::vector<uint8_t> mask(size_t{kSide} * kSide);
  pin_to_cores({available_cores().back()});
  std::vector<double> rates;
  for (int pass = -1; pass < passes; ++pass) {  // the first one is not counted
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < source->size(); ++i) {
      std::string why;
      int64_t labelled = 0;
      const uint64_t key = sample_key(1, pass, i);
      if (!maker.make(i, key, image.data(), &why) ||
          !maker.make_mask(i, key, mask.data(), &labelled, &why)) {
        throw Error(ErrorCode::kUsage, why, source->name(i));
      }
    }
    if (pass >= 0) rates.push_back(static_cast<double>(source->size()) * 1000 / ms_since(start));
  }
  std::printf("vision_segmentation: %.1f images/s\n", median(rates));
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
