// Files as they come from others. Skips where they are not on this machine.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/env.h"
#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

using testing::copy_of;
using testing::settings_of;
using testing::TempFolder;

// FLEET_SHARED_DATA, or ../shared/data next to the source.
fs::path shared(const std::string& name) {
  const std::string otherwise = source_folder() + "/../shared/data";
  return fs::path(env_or("FLEET_SHARED_DATA", otherwise)) / name;
}

TEST(RealData, ImagenetPhotographs_AllDecode) {
  const fs::path tar = shared("imagenet_200.tar");
  if (!fs::exists(tar)) GTEST_SKIP() << tar << " is not here";
  TempFolder folder;
  fs::create_directories(folder / "train/all");
  const std::string command = "tar -xf '" + tar.string() + "' -C '" + (folder / "train/all") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string json = R"({"root": ")" + folder.path() + R"(", "on_damaged": "fail",
      "image": {"channels": 3, "height": 224, "width": 224}, "batch_size": 40, "threads": 2,
      "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
      "augment": {"random_resized_crop": true, "flip": true}, "eval": {"resize": 256}, "test": {"folder": "train"}})";
  for (const bool train : {true, false}) {
    auto pipeline = make_pipeline(settings_of("image_folder", json), train, {});
    ASSERT_EQ(pipeline->samples(), 200);
    pipeline->start_epoch(0);
    double sum = 0, squares = 0, count = 0;
    while (const Batch* batch = pipeline->next()) {
      EXPECT_EQ(batch->real, 40);
      const size_t size = batch->size * batch->image.count();
      for (size_t i = 0; i < size; ++i) {
        sum += batch->images[i];
        squares += batch->images[i] * batch->images[i];
      }
      count += static_cast<double>(size);
    }
    EXPECT_EQ(count, 200.0 * 3 * 224 * 224);
    // The usual deviations are means of each image's own: over all pixels it is larger.
    EXPECT_NEAR(sum / count, 0, 0.2);
    EXPECT_NEAR(squares / count, 1.3, 0.2);
  }
}

TEST(RealData, FashionMnist_HasItsKnownFirstLabelsAndMean) {
  const std::string root = env_or("FLEET_FASHION_MNIST", "/usr/share/datasets/fashion-mnist");
  if (!fs::exists(root)) GTEST_SKIP() << root << " is not here (Debian: dataset-fashion-mnist)";
  const Settings settings =
      settings_of("idx", R"({"root": ")" + root + R"(", "shuffle": false, "batch_size": 6000})");
  auto train = make_pipeline(settings, true, {.classes = 10});
  EXPECT_EQ(train->samples(), 60000);
  EXPECT_EQ(train->image(), (ImageShape{1, 28, 28}));
  train->start_epoch(0);
  double sum = 0, count = 0;
  const Batch* batch = train->next();
  const std::vector<int64_t> first(batch->labels.begin(), batch->labels.begin() + 8);
  EXPECT_THAT(first, ::testing::ElementsAre(9, 0, 0, 3, 0, 2, 7, 2));
  for (; batch; batch = train->next()) {
    const size_t size = batch->size * batch->image.count();
    for (size_t i = 0; i < size; ++i) sum += batch->images[i];
    count += static_cast<double>(size);
  }
  EXPECT_NEAR(sum / count, 0.2860, 0.0001);  // as published with the set
  EXPECT_EQ(make_pipeline(settings, false, {})->samples(), 10000);
}

}  // namespace
}  // namespace fleet::data
