// A job that predicts images with the weights in tests/golden/lenet.safetensors, for tests of
// --predict.
#pragma once

#include <png.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/engine/train/trainer_job.h"
#include "tests/test_paths.h"
#include "train/predict.h"

namespace fleet {

// Grey pixels, row by row.
struct GreyImage {
  int height = 28, width = 28;
  std::vector<uint8_t> pixels;

  static GreyImage numbered(int number, int height = 28, int width = 28) {
    GreyImage image{height, width, {}};
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const int value = x * (3 + number) + y * (5 + 2 * number) + (x * y) / (number + 1);
        image.pixels.push_back(static_cast<uint8_t>(value + 40 * number));
      }
    }
    return image;
  }
  GreyImage mirrored() const {
    GreyImage other = *this;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        other.pixels[y * width + x] = pixels[y * width + width - 1 - x];
      }
    }
    return other;
  }
  GreyImage crop(int top, int left, int side) const {
    GreyImage part{side, side, {}};
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) part.pixels.push_back(pixels[(top + y) * width + left + x]);
    }
    return part;
  }
  void write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = PNG_FORMAT_GRAY;
    ASSERT_TRUE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), width, nullptr));
  }
};

class PredictingLenet : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    std::filesystem::create_directories(output_ + "/photos");
  }
  std::string path_of(const std::string& name) const { return output_ + "/photos/" + name; }
  std::string lines_path() const { return output_ + "/lines.jsonl"; }

  Job lenet(const std::vector<std::string>& input, const std::vector<std::string>& more) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": {"name": "lenet"}, "data": {"batch_size": 2, "image": {"channels": 1, "height": 28,
      "width": 28}, "mean": [0.5], "std": [0.25]}})",
                                            "test");
    apply_overrides(
        tree, with({"predict.input=" + nlohmann::json(input).dump(),
                    "predict.checkpoint=" + source_folder() + "/tests/golden/lenet.safetensors",
                    "predict.output=" + lines_path()},
                   more));
    return make_job(tree);
  }

  // The text of the output.
  std::string predicted(int world, const Job& job) {
    run_ranks_well(world, [&](RankThread& rank) {
      HostDevice device;
      predict(
          job, device,
          {.rank = rank.rank, .world = world, .control = rank.communicator, .store = rank.store});
    });
    return read_file(job.settings.text("predict.output"));
  }

  // The rows of an array of NumPy.
  std::vector<std::vector<float>> rows(int world, const std::vector<std::string>& input,
                                       const std::vector<std::string>& more) {
    const std::string text =
        predicted(world, lenet(input, with(more, {"predict.output=" + output_ + "/rows.npy"})));
    const std::string values = text.substr(text.find('\n') + 1);
    std::vector<float> all(values.size() / sizeof(float));
    std::memcpy(all.data(), values.data(), values.size());
    const size_t width = all.size() / input.size();
    std::vector<std::vector<float>> result;
    for (size_t r = 0; r < input.size(); ++r) {
      result.emplace_back(all.begin() + static_cast<ptrdiff_t>(r * width),
                          all.begin() + static_cast<ptrdiff_t>((r + 1) * width));
    }
    return result;
  }

  Error refusal(const Job& job) {
    HostDevice device;
    return thrown_by([&] { predict(job, device, {}); });
  }
};

}  // namespace fleet
