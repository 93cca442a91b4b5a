// Training samples from a raw pack (fleetrun pack --size 256 --raw) against the same samples from
// JPEG files and from a pack of JPEGs of that size, on one core: read, decode, random resized crop
// to 224, mirror, normalise, by what a reader thread runs. In turns, one pass over all files each;
// medians are compared. The files are in the page cache.
// Links: data
//
// bench_pack [FOLDER [PASSES]]; FOLDER holds JPEG files; left out, imagenet_200.tar of
// FLEET_SHARED_DATA (../shared/data) is unpacked into the build folder.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/thread.h"
#include "data/augment.h"
#include "data/pack_images.h"
#include "data/pipeline.h"
#include "data/random.h"
#include "data/sample_maker.h"
#include "tests/bench/photographs.h"
#include "tests/bench/times.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

Settings settings(const std::string& source, const std::string& json) {
  ConfigTree tree = ConfigTree::from_json(json, "bench");
  return tree.validate(data_schema(source));
}

// One reader thread's work on every sample of a source.
class Reader {
 public:
  explicit Reader(const Settings& data)
      : source_(open_split(data, true, false, {})),
        chain_(data.section("augment"), true, {3, 224, 224}, {0.485, 0.456, 0.406},
               {0.229, 0.224, 0.225}),
        maker_(*source_, chain_),
        out_(chain_.image().count()) {}

  // Images a second.
  double pass(int number) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < source_->size(); ++i) {
      std::string why;
      if (!maker_.make(i, sample_key(1, number, i), out_.data(), &why)) {
        throw Error(ErrorCode::kIo, why, source_->name(i));
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return static_cast<double>(source_->size()) / took.count();
  }

 private:
  std::unique_ptr<Source> source_;
  AugmentChain chain_;
  SampleMaker maker_;
  std::vector<float> out_;
};

int run(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : unpacked_photographs();
  if (folder.empty()) {
    std::puts("pack: skipped: ../shared/data/imagenet_200.tar is not here; give a folder of JPEGs");
    return 0;
  }
  const int passes = argc > 2 ? std::atoi(argv[2]) : 11;
  const std::string scratch = program_folder() + "/../bench_pack";
  fs::remove_all(scratch);
  make_directories(scratch);
  std::ofstream list(scratch + "/list.txt");
  for (const auto& entry : fs::directory_iterator(folder)) {
    list << fs::absolute(entry.path()).string() << " 0\n";
  }
  list.close();
  const std::string augment = R"("augment": {"random_resized_crop": true, "flip": true})";
  const auto packed = [&](const std::string& name) {
    return settings("packed", R"({"root": ")" + scratch + "/" + name + "\", " + augment + "}");
  };
  const Settings files = settings(
      "image_list", R"({"train": {"list": ")" + scratch + "/list.txt\"}, " + augment + "}");
  const auto quiet = [](const PackProgress&) {};
  const PackResult raw_pack =
      pack_images(files, scratch + "/raw", {.raw = true, .size = 256}, quiet);
  const PackResult jpeg_pack = pack_images(files, scratch + "/jpeg", {.size = 256}, quiet);
  pin_to_cores({available_cores().back()});
  Reader from_files(files), from_raw(packed("raw")), from_jpeg(packed("jpeg"));
  std::vector<double> file_rates, raw_rates, jpeg_rates, raw_ratios, jpeg_ratios;
  for (int pass = 0; pass < passes; ++pass) {
    file_rates.push_back(from_files.pass(pass));
    raw_rates.push_back(from_raw.pass(pass));
    jpeg_rates.push_back(from_jpeg.pass(pass));
    raw_ratios.push_back(raw_rates.back() / file_rates.back());
    jpeg_ratios.push_back(jpeg_rates.back() / file_rates.back());
  }
  const auto kib = [](const PackResult& pack) {
    return static_cast<double>(pack.bytes) / 1024 / static_cast<double>(pack.samples);
  };
  std::printf("pack: ratio %.2f (raw pack %.0f images/s of %.0f KiB, JPEG files %.0f images/s)\n",
              median(raw_ratios), median(raw_rates), kib(raw_pack), median(file_rates));
  std::printf("pack: ratio %.2f (JPEG pack %.0f images/s of %.0f KiB, JPEG files %.0f images/s)\n",
              median(jpeg_ratios), median(jpeg_rates), kib(jpeg_pack), median(file_rates));
  fs::remove_all(scratch);
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
