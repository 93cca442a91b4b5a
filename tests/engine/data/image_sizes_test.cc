// Sizes of a job's images, compared before the first step.
#include "data/image_sizes.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "tests/captured_log.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::settings_of;

constexpr ImageShape kUsual{3, 224, 224};

// Inserts a segment of a JPEG behind its first two bytes.
std::string with_segment(const std::string& jpeg, char marker, const std::string& content) {
  const size_t length = content.size() + 2;
  std::string segment{'\xff', marker, static_cast<char>(length >> 8), static_cast<char>(length)};
  return jpeg.substr(0, 2) + segment + content + jpeg.substr(2);
}

// What a camera that was held upright notes about a picture that is stored on its side.
std::string turned(const std::string& jpeg) {
  const char tiff[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
  return with_segment(jpeg, '\xe1', std::string(tiff, sizeof tiff - 1));
}

class ImageSizes : public ::testing::Test {
 protected:
  // The same images as class folders, lists and shards, for training and test.
  void write_images(const std::vector<std::string>& train, const std::vector<std::string>& test) {
    write_split("train", train);
    write_split("test", test);
  }
  void write_split(const std::string& split, const std::vector<std::string>& images) {
    std::string list, members;
    for (size_t i = 0; i < images.size(); ++i) {
      const std::string label = std::to_string(i % 2), name = std::to_string(i);
      const std::string file = split + "/" + label + "/" + name + ".jpg";
      testing::write(folder_ / file, images[i]);
      testing::write(folder_ / (split + ".m/" + name + ".jpg"), images[i]);
      testing::write(folder_ / (split + ".m/" + name + ".cls"), label);
      list += file + " " + label + "\n";
      members += " " + name + ".jpg " + name + ".cls";
    }
    testing::write(folder_ / (split + ".txt"), list);
    const std::string command = "tar -cf '" + (folder_ / (split + ".tar")) + "' -C '" +
                                (folder_ / (split + ".m")) + "'" + members;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  Settings settings(const std::string& source, const std::string& more) const {
    const std::string keys = source == "image_list" ? R"("train": {"list": "train.txt"},
                                                         "test": {"list": "test.txt"})"
                             : source == "tar"      ? R"("train": {"shards": ["train.tar"]},
                                                         "test": {"shards": ["test.tar"]})"
                                                    : R"("train": {"folder": "train"})";
    return settings_of(
        source, R"({"root": ")" + folder_.path() + R"(", "batch_size": 4, )" + keys + more + "}");
  }
  void check(const std::string& source, const std::string& more) const {
    const Settings data = settings(source, more);
    const auto train = make_pipeline(data, true, {});
    const auto test = make_pipeline(data, false, {});
    if (test->image() != train->image()) refuse_first_sizes(data, *train, *test, kUsual);
    check_sizes(data, train.get(), test.get(), kUsual);
  }

  testing::TempFolder folder_;
};

const std::vector<std::string>& sources_of_files() {
  static const std::vector<std::string> all{"image_folder", "image_list", "tar"};
  return all;
}

std::vector<std::string> of_sizes(const std::vector<std::pair<int, int>>& sizes) {
  std::vector<std::string> images;
  for (const auto& [height, width] : sizes) images.push_back(testing::jpeg_picture(height, width));
  return images;
}

TEST_F(ImageSizes, Photographs_NeedWhatTheLineNames) {
  write_images(of_sizes({{40, 60}, {40, 60}, {60, 40}, {48, 64}}), of_sizes({{40, 60}, {60, 40}}));
  for (const std::string& source : sources_of_files()) {
    const Error error = thrown_by([&] { check(source, ""); });
    EXPECT_THAT(error, IsUsageError(HasSubstr(".jpg"))) << source;
    EXPECT_THAT(error.failure(), AllOf(HasSubstr("of another size"), HasSubstr("2 of 4")));
    EXPECT_THAT(error.next(),
                AllOf(HasSubstr("data.image.height=224"), HasSubstr("data.image.width=224"),
                      HasSubstr("data.augment.random_resized_crop=true"),
                      HasSubstr("data.eval.resize=256")));
    check(source, R"(, "image": {"height": 224, "width": 224},
                      "augment": {"random_resized_crop": true}, "eval": {"resize": 256})");
  }
}

// Only the evaluation has nothing that resizes.
TEST_F(ImageSizes, RandomResizedCropAlone_NeedsTheEvaluationsResize) {
  write_images(of_sizes({{40, 60}, {60, 40}}), of_sizes({{40, 60}, {60, 40}}));
  for (const std::string& source : sources_of_files()) {
    for (const auto& [size, resize] : {std::pair("32", "37"), std::pair("160", "183")}) {
      const std::string image = std::string(R"(, "image": {"height": )") + size + R"(, "width": )" +
                                size + R"(}, "augment": {"random_resized_crop": true})";
      EXPECT_THAT(thrown_by([&] { check(source, image); }).next(),
                  AllOf(HasSubstr(std::string("data.eval.resize=") + resize),
                        Not(HasSubstr("random_resized_crop")), Not(HasSubstr("data.image"))));
      check(source, image + R"(, "eval": {"resize": )" + resize + "}");
    }
  }
}

TEST_F(ImageSizes, CropThatDoesNotResize_IsReplaced) {
  write_images(of_sizes({{32, 32}, {20, 20}}), of_sizes({{32, 32}}));
  const Error error = thrown_by([&] {
    check("image_folder", R"(, "image": {"height": 32, "width": 32},
                              "augment": {"random_crop_padding": 4})");
  });
  EXPECT_THAT(error.next(), AllOf(HasSubstr("data.augment.random_crop_padding=0"),
                                  HasSubstr("data.augment.random_resized_crop=true")));
}

TEST_F(ImageSizes, AllOfOneOtherSize_MayBeDataImage) {
  write_images(of_sizes({{40, 60}, {40, 60}}), of_sizes({{40, 60}}));
  check("image_folder", "");
  EXPECT_THAT(
      thrown_by([&] { check("image_folder", R"(, "image": {"height": 32, "width": 32})"); }).next(),
      HasSubstr("data.image to 40x60"));
}

TEST_F(ImageSizes, FirstTestImageOfAnotherSize_IsRefusedAlike) {
  write_images(of_sizes({{40, 60}, {40, 60}}), of_sizes({{30, 30}, {30, 30}}));
  EXPECT_THAT(thrown_by([&] { check("image_folder", ""); }),
              AllOf(IsUsageError(), Advises(HasSubstr("data.eval.resize=256"))));
}

// The decoder takes all of these, and none is larger for what its header notes.
TEST_F(ImageSizes, ColoursNotesAndDamage_AreNoSizes) {
  const auto picture = [](int channels) {
    return testing::jpeg_of(testing::picture(40, 60, channels), 40, 60, channels);
  };
  const std::string large_header = with_segment(picture(3), '\xe2', std::string(60000, 'x'));
  const std::string png = testing::png_of(testing::picture(40, 60, 4), 40, 60, 4);
  write_images({picture(3), picture(1), picture(4), turned(picture(3)), large_header, png,
                "damaged", picture(3).substr(0, 30)},
               {picture(1), turned(picture(1))});
  for (const std::string& source : sources_of_files()) check(source, "");
  const std::string other =
      with_segment(testing::jpeg_picture(60, 40), '\xe2', std::string(60000, 'x'));
  write_images({picture(3), picture(1), other}, {picture(3)});
  EXPECT_THAT(thrown_by([&] { check("image_list", ""); }), IsUsageError(folder_ / "train/0/2.jpg"));
}

// With and without something that resizes.
TEST_F(ImageSizes, TurnedImages_AreCountedAndSaid) {
  const std::string upright = testing::jpeg_picture(40, 60);
  write_images({upright, turned(upright), turned(upright)}, {turned(upright), upright});
  const std::string resized = R"(, "image": {"height": 32, "width": 32},
                                   "augment": {"random_resized_crop": true}, "eval": {"resize": 40})";
  for (const std::string& source : sources_of_files()) {
    for (const std::string& more : {std::string(), resized}) {
      EXPECT_THAT(captured_log([&] { check(source, more); }),
                  AllOf(HasSubstr("3 of 5 images"), HasSubstr("EXIF")))
          << source;
    }
  }
}

// With data.exif=apply, sizes are those of the upright images.
TEST_F(ImageSizes, ImagesTurnedUpright_HaveTheirUprightSize) {
  const std::string stored = testing::jpeg_picture(40, 60);
  write_images({turned(stored), turned(stored), testing::jpeg_picture(60, 40)}, {turned(stored)});
  for (const std::string& source : sources_of_files()) {
    EXPECT_THAT(captured_log([&] { check(source, R"(, "exif": "apply")"); }),
                AllOf(HasSubstr("3 of 4 images"), HasSubstr("data.exif")))
        << source;
    EXPECT_THROW(check(source, ""), ImageSizeError);
  }
  const auto pipeline = make_pipeline(settings("image_list", R"(, "exif": "apply")"), true, {});
  EXPECT_EQ(pipeline->image(), (ImageShape{3, 60, 40}));
}

TEST_F(ImageSizes, OneOddImageOfMany_IsFound) {
  std::vector<std::string> images(301, testing::jpeg_picture(8, 8));
  images[217] = testing::jpeg_picture(8, 9);
  write_images(images, of_sizes({{8, 8}}));
  EXPECT_THAT(thrown_by([&] { check("image_list", ""); }),
              IsUsageError(folder_ / "train/1/217.jpg"));
}

TEST_F(ImageSizes, SizeOfTheFirstImage_IsNoQuietChoice) {
  write_images(of_sizes({{40, 60}, {60, 40}}), of_sizes({{40, 60}}));
  const std::string resized =
      R"(, "augment": {"random_resized_crop": true}, "eval": {"resize": 70})";
  EXPECT_THAT(captured_log([&] { check("image_folder", resized); }), HasSubstr("40x60"));
  write_images(of_sizes({{40, 60}, {40, 60}}), of_sizes({{40, 60}}));
  EXPECT_EQ(captured_log([&] { check("image_list", resized); }), "");
}

TEST_F(ImageSizes, Report_CountsWhatDoesNotFit) {
  write_images(of_sizes({{40, 60}, {60, 40}}), of_sizes({{40, 60}}));
  const auto source = make_pipeline(settings("image_list", ""), true, {});
  const SizeReport report =
      read_sizes(source->source(), [](int height, int width) { return height < width; });
  EXPECT_EQ(report.seen, 2);
  EXPECT_EQ(report.others, 1);
  EXPECT_EQ(report.example, 1);
  EXPECT_EQ(report.height, 60);
}

}  // namespace
}  // namespace fleet::data
