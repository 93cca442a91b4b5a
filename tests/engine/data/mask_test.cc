// Images with masks: pairs of files, joint transforms, faulty masks.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "data/encode_image.h"
#include "data/mask_maker.h"
#include "data/pack_images.h"
#include "data/sample_maker.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;

// Pillow's Image.resize(..., NEAREST) of a line whose pixels are their numbers.
TEST(NearestPixels, Resized_AreThoseOfPillow) {
  const auto line = [](int from, int to) {
    return nearest_pixels({.source_width = from, .out_width = to, .resized_width = to}, true);
  };
  EXPECT_THAT(line(7, 5), ElementsAre(0, 2, 3, 4, 6));
  EXPECT_THAT(line(5, 12), ElementsAre(0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4));
  EXPECT_THAT(line(33, 20), ElementsAre(0, 2, 4, 5, 7, 9, 10, 12, 14, 15, 17, 18, 20, 22, 23, 25,
                                        27, 28, 30, 32));
}

TEST(NearestPixels, OutsideOfTheImage_AreNone) {
  EXPECT_THAT(nearest_pixels({.source_height = 2, .out_height = 5, .y = -1, .height = 5}, false),
              ElementsAre(-1, 0, 1, -1, -1));
  EXPECT_THAT(nearest_pixels(
                  {.source_width = 2, .out_width = 4, .resized_width = 2, .resized_x = -1}, true),
              ElementsAre(-1, 0, 1, -1));
}

// A folder with images and masks of the same content: the class of a pixel is its grey value.
class Masks : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"train", "val"}) {
      std::filesystem::create_directories(folder_ / (std::string(name) + "/images"));
      std::filesystem::create_directories(folder_ / (std::string(name) + "/masks"));
    }
    for (int i = 0; i < 3; ++i) add("train", "p" + std::to_string(i), 8, 10, i);
    add("val", "q", 8, 10, 7);
  }

  static std::vector<uint8_t> numbers(int height, int width, int seed) {
    std::vector<uint8_t> all(static_cast<size_t>(height) * width);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>((i * 7 + seed) % 100 + 1);
    return all;
  }
  void add(const std::string& split, const std::string& name, int height, int width, int seed) {
    const auto own = numbers(height, width, seed);
    testing::write(folder_ / (split + "/images/" + name + ".png"),
                   testing::png_of(own, height, width, 1));
    testing::write(mask(split, name), encode_index_png(own, height, width));
  }
  std::string mask(const std::string& split, const std::string& name) const {
    return folder_ / (split + "/masks/" + name + ".png");
  }

  Settings settings(const std::string& more) const {
    const auto text = [](int number) { return std::to_string(number); };
    return testing::settings_of(
        "image_masks", R"({"root": ")" + folder_.path() +
                           R"(", "mean": [0], "std": [1], "image": {"channels": 1, "height": )" +
                           text(height_) + R"(, "width": )" + text(width_) +
                           R"(}, "batch_size": )" + text(batch_) + more + "}");
  }
  std::unique_ptr<InputPipeline> open(const std::string& more = "", int64_t classes = 101,
                                      bool train = true, int64_t rank = 0, int64_t ranks = 1) {
    auto pipeline = make_pipeline(settings(more), train,
                                  {.rank = static_cast<int>(rank),
                                   .ranks = static_cast<int>(ranks),
                                   .seed = 3,
                                   .classes = classes});
    if (pipeline) pipeline->start_epoch(0);
    return pipeline;
  }
  std::string error(const std::string& more = "", int64_t classes = 101) {
    return testing::message_of([&] { open(more, classes)->next(); });
  }

  TempFolder folder_;
  int height_ = 8, width_ = 10, batch_ = 3;
};

std::span<const uint8_t> mask_of(const Batch& batch) {
  const auto bytes = batch.column("mask");
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}
std::span<const float> labelled_of(const Batch& batch) {
  const auto bytes = batch.column("labelled_pixels");
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// The pixels of an image are their classes, and 0 where there is neither.
void expect_joint(const Batch& batch) {
  const auto mask = mask_of(batch);
  ASSERT_EQ(mask.size(), batch.images.size());
  const size_t pixels = mask.size() / static_cast<size_t>(batch.size);
  std::vector<float> labelled(static_cast<size_t>(batch.size));
  for (size_t i = 0; i < mask.size(); ++i) {
    const int value = static_cast<int>(std::lround(batch.images[i] * 255));
    ASSERT_EQ(value, mask[i] == 255 ? 0 : mask[i]) << i;
    labelled[i / pixels] += mask[i] == 255 ? 0 : 1;
  }
  EXPECT_THAT(labelled_of(batch), ::testing::ElementsAreArray(labelled));
}

TEST_F(Masks, CropsAndFlips_MoveThemWithTheirImages) {
  std::set<std::vector<uint8_t>> seen;
  const auto pipeline = open(R"(, "augment": {"random_crop_padding": 3, "flip": true,
      "vertical_flip": {"probability": 0.5}})");
  for (int epoch = 0; epoch < 8; ++epoch) {
    pipeline->start_epoch(epoch);
    while (const Batch* batch = pipeline->next()) {
      expect_joint(*batch);
      const auto mask = mask_of(*batch);
      seen.emplace(mask.begin(), mask.end());
    }
  }
  EXPECT_GT(seen.size(), 4u);
}

TEST_F(Masks, Evaluation_ReadsTheFoldersOfTheTestData) {
  const auto pipeline = open("", 101, false);
  ASSERT_NE(pipeline, nullptr);
  EXPECT_EQ(pipeline->source().size(), 1);
  const Batch* batch = pipeline->next();
  const auto want = numbers(8, 10, 7);
  EXPECT_TRUE(std::ranges::equal(mask_of(*batch).first(80), want));
  EXPECT_THAT(labelled_of(*batch), ElementsAre(80, 0, 0));  // two samples pad the batch
  EXPECT_TRUE(std::ranges::all_of(mask_of(*batch).subspan(80), [](int x) { return x == 255; }));
}

// A picture that is black to the left and white to the right, with classes 0 and 1.
TEST_F(Masks, RandomResize_MovesThemWithTheirImages) {
  std::filesystem::remove_all(folder_ / "train/images");
  std::filesystem::remove_all(folder_ / "train/masks");
  std::filesystem::create_directories(folder_ / "train/images");
  std::filesystem::create_directories(folder_ / "train/masks");
  std::vector<uint8_t> image(30 * 40), mask(30 * 40);
  for (size_t i = 0; i < image.size(); ++i) {
    mask[i] = i % 40 >= 20 ? 1 : 0;
    image[i] = mask[i] == 1 ? 250 : 100;
  }
  testing::write(folder_ / "train/images/a.png", testing::png_of(image, 30, 40, 1));
  testing::write(folder_ / "train/masks/a.png", encode_index_png(mask, 30, 40));
  height_ = 24;
  width_ = 32;
  batch_ = 1;
  const auto pipeline = open(R"(, "augment": {"random_resize": [15, 60], "flip": true})");
  std::set<float> labelled;
  for (int epoch = 0; epoch < 24; ++epoch) {
    pipeline->start_epoch(epoch);
    const Batch* batch = pipeline->next();
    const auto own = mask_of(*batch);
    for (size_t i = 0; i < own.size(); ++i) {
      const auto value = std::lround(batch->images[i] * 255);
      ASSERT_EQ(value == 0, own[i] == 255);
      ASSERT_TRUE(value != 100 || own[i] == 0);
      ASSERT_TRUE(value != 250 || own[i] == 1);
    }
    labelled.insert(labelled_of(*batch)[0]);
  }
  EXPECT_GT(labelled.size(), 2u);
  EXPECT_TRUE(labelled.contains(24 * 32));
}

TEST_F(Masks, Ranks_GetThePartsOfOne) {
  const std::string keys = R"(, "augment": {"random_crop_padding": 2, "flip": true})";
  batch_ = 2;
  const auto whole = open(keys);
  batch_ = 1;
  const auto first = open(keys, 101, true, 0, 2), second = open(keys, 101, true, 1, 2);
  const auto both = mask_of(*whole->next());
  EXPECT_TRUE(std::ranges::equal(mask_of(*first->next()), both.first(80)));
  EXPECT_TRUE(std::ranges::equal(mask_of(*second->next()), both.subspan(80)));
}

TEST_F(Masks, MissingAndSpareFiles_AreNamed) {
  const std::string image = folder_ / "train/images/p1.png";
  std::filesystem::rename(mask("train", "p1"), folder_ / "p1.png");
  EXPECT_THAT(thrown_by([&] { open(); }), IsUsageError(image));
  std::filesystem::rename(folder_ / "p1.png", mask("train", "p1"));
  std::filesystem::remove(image);
  EXPECT_THAT(thrown_by([&] { open(); }), IsUsageError(mask("train", "p1")));
}

TEST_F(Masks, ClassAboveThoseOfTheModel_NamesTheFile) {
  EXPECT_THAT(error("", 20), HasSubstr("/train/masks/p"));
  EXPECT_THAT(error("", 20), HasSubstr("20 classes"));
}

// Also in a part that no crop shows.
TEST_F(Masks, ClassThatNoCropShows_NamesTheFile) {
  height_ = 2;
  std::vector<uint8_t> own(8 * 10, 1);
  const std::string evaluates = R"(, "eval": {"crop_pct": 1, "crop_mode": "center"})";
  own[75] = 101;
  testing::write(mask("val", "q"), encode_index_png(own, 8, 10));
  const auto first = [&](int64_t classes) {
    const auto pipeline = open(evaluates, classes, false);
    const auto mask = mask_of(*pipeline->next());
    return std::vector<uint8_t>(mask.begin(), mask.end());
  };
  EXPECT_THAT(thrown_by([&] { first(101); }), IsUsageError(mask("val", "q")));
  EXPECT_THAT(first(102), ::testing::Not(::testing::Contains(101)));
}

TEST_F(Masks, Colours_AreRefused) {
  testing::write(mask("train", "p2"), testing::png_of(testing::picture(8, 10, 3), 8, 10, 3));
  EXPECT_THAT(error(), HasSubstr("3 channels"));
}

TEST_F(Masks, OtherSizeThanTheImage_IsAFaultySample) {
  testing::write(mask("train", "p2"), encode_index_png(numbers(9, 10, 2), 9, 10));
  EXPECT_THAT(error(R"(, "on_damaged": "fail")"), HasSubstr("9 x 10 pixels"));
  const auto pipeline = open();  // another sample replaces it
  expect_joint(*pipeline->next());
  testing::write(mask("train", "p2"), "");  // as is an empty file
  const auto again = open();
  expect_joint(*again->next());
}

// A pack has no place for them: before anything is written.
TEST_F(Masks, Packing_IsRefused) {
  const TempFolder out;
  const std::string pack = out.path() + "/pack";
  EXPECT_THAT(thrown_by([&] { pack_images(settings(""), pack, {}, [](const PackProgress&) {}); }),
              IsUsageError("data.source"));
  EXPECT_FALSE(std::filesystem::exists(pack));
}

TEST_F(Masks, AugmentationsThatTheyCannotFollow_AreRefused) {
  for (const char* keys : {R"("mixup_alpha": 0.2)", R"("policy": "RandAugment")"}) {
    EXPECT_THAT(thrown_by([&] { open(std::string(R"(, "augment": {)") + keys + "}"); }),
                IsUsageError("data.augment"))
        << keys;
  }
}

}  // namespace
}  // namespace fleet::data
