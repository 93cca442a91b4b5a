// Evaluation sees what torchvision's Resize and CenterCrop give.
#include <gmock/gmock.h>

#include <cmath>

#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

using testing::copy_of;
using testing::settings_of;
using testing::TempFolder;

constexpr int kHeight = 120, kWidth = 144, kSide = 12;

// Of the JPEG below: torchvision 0.29's Resize(15) and CenterCrop(12) with Pillow 13, RGB by row.
constexpr char kExpected[] =
    "6d7fa18b6a6580957a80758f8089707f7c8a81817a8082817f7f82817f7e7e7f7e7d7f7d877a627d8c84"
    "83768d7e8672847e8d86867c838387818181817f7f807f807f7e807f817f7b7c8d807c7d7f84797f7d86"
    "7f807a808282828182817c7d7f7a7e827f7d8180817f807f7d8475807f8380817e80807f7e827f7f7f7f"
    "807f7f837d817e7e7a867b7c857d83827a80807e817b7d7a7e7e808180808181817f807e7d7f7e7f8080"
    "7f807f838281837a817f7775807f827c7e7e7b7e7e7f80817f7e7f807f7f807e7e7f817f7e7f817e807f"
    "7f8180827f7f7e7f7f7e818280807f7f7f807e7f7e7d807f838082827e80817f818181828080817e807f"
    "807d807f807f7e807e7984817b827c7e807e8082808380827f7f7f817e817f7f817e7e7f807e817f807e"
    "7f7f807b7f7c797d7c7d7e7f8181817e817e7c7d7d80817f807e7f827f7e817f81827f8180807f7e7e80"
    "7e7e81807d7f827e827e807c7e807d837f807f7d807f81808383828381817e817f7e8080827c817c7c81"
    "7f7e837e7f7e817d7d828081817e8081827e7f837f7f81817f807f7e7e8080817d8182838287827c827e"
    "8180807f807f7e7e807e7e7e";

// Finer and finer stripes: what is decoded at a part of its size looks different.
std::vector<uint8_t> stripes() {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (int c = 0; c < 3; ++c) {
        pixels.push_back(
            static_cast<uint8_t>((x * x * 7 + y * y * 13 + x * y * 5) / (40 + 10 * c)));
      }
    }
  }
  return pixels;
}

// The largest distance from what torchvision gives, of values up to 255.
double distance(const std::string& more) {
  TempFolder folder;
  testing::write(folder / "a.jpg", testing::jpeg_of(stripes(), kHeight, kWidth, 3));
  testing::write(folder / "list.txt", "a.jpg 0\n");
  auto pipeline = make_pipeline(
      settings_of("image_list", R"({"root": ")" + folder.path() + R"(", "batch_size": 1,
          "train": {"list": "list.txt"}, "test": {"list": "list.txt"},
          "image": {"channels": 3, "height": 12, "width": 12}, "eval": {"resize": 15)" +
                                    more + "}}"),
      false, {});
  pipeline->start_epoch(0);
  const testing::Copy batch = copy_of(*pipeline->next());
  double largest = 0;
  for (int i = 0; i < kSide * kSide; ++i) {
    for (int c = 0; c < 3; ++c) {
      const std::string digits(kExpected + 2 * (3 * i + c), 2);
      const double expected = std::stoi(digits, nullptr, 16);
      const double got = batch.images[c * kSide * kSide + i] * 255;
      largest = std::max(largest, std::abs(got - expected));
    }
  }
  return largest;
}

TEST(Evaluation, LargeJpeg_IsWhatTorchvisionSees) { EXPECT_LE(distance(""), 1.0); }

TEST(Evaluation, ScaledDecode_IsAnotherPicture) {
  EXPECT_GT(distance(R"(, "scaled_decode": true)"), 2.0);
}

}  // namespace
}  // namespace fleet::data
