#include "data/exif.h"

#include <gtest/gtest.h>

#include <string>

namespace fleet::data {
namespace {

int orientation(const std::string& file) {
  return exif_orientation({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

std::string segment(char marker, const std::string& content) {
  const size_t length = content.size() + 2;
  return std::string{'\xff', marker, static_cast<char>(length >> 8), static_cast<char>(length)} +
         content;
}

// A TIFF block whose directory has another entry before the orientation.
std::string tiff(bool little_endian, int value, int type = 3) {
  const auto number = [&](int of, size_t size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) {
      const size_t shift = 8 * (little_endian ? i : size - 1 - i);
      bytes.push_back(static_cast<char>(of >> shift & 255));
    }
    return bytes;
  };
  return std::string(little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) +
         number(0x0100, 2) + number(4, 2) + number(1, 4) + number(4000, 4) +  // the width
         number(0x0112, 2) + number(type, 2) + number(1, 4) +
         (type == 4 ? number(value, 4) : number(value, 2) + number(0, 2));
}

std::string jpeg(const std::string& tiff) {
  return "\xff\xd8" + segment('\xe0', "JFIF") + segment('\xe1', std::string("Exif\0\0", 6) + tiff) +
         "\xff\xdb";
}

TEST(ExifOrientation, BothByteOrders_AreRead) {
  for (const bool little_endian : {false, true}) {
    for (int value = 1; value <= 8; ++value) {
      EXPECT_EQ(orientation(jpeg(tiff(little_endian, value))), value) << little_endian;
    }
  }
}

TEST(ExifOrientation, StoredAsALongNumber_IsRead) {
  EXPECT_EQ(orientation(jpeg(tiff(true, 6, /*type=*/4))), 6);
  EXPECT_EQ(orientation(jpeg(tiff(false, 8, /*type=*/4))), 8);
}

TEST(ExifOrientation, WithoutAUsableNote_IsUpright) {
  EXPECT_EQ(orientation(""), 1);
  EXPECT_EQ(orientation("\x89PNG\r\n"), 1);
  EXPECT_EQ(orientation("\xff\xd8" + segment('\xe0', "JFIF") + "\xff\xdb"), 1);
  EXPECT_EQ(orientation("\xff\xd8" + segment('\xe1', "http://ns.adobe.com/xap/1.0/")), 1);
  for (const int value : {0, 9, 300}) EXPECT_EQ(orientation(jpeg(tiff(true, value))), 1) << value;
  EXPECT_EQ(orientation(jpeg(tiff(true, 6, /*type=*/2))), 1);
  EXPECT_EQ(orientation(jpeg("XX" + tiff(true, 6).substr(2))), 1);
}

// Any beginning and any changed byte: no read beyond the end (sanitizers), a value in range.
TEST(ExifOrientation, DamagedNotes_AreHarmless) {
  const std::string whole = jpeg(tiff(true, 6));
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_LE(orientation(whole.substr(0, i)), 8);
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[i] = byte;
      const int value = orientation(changed);
      EXPECT_TRUE(value >= 1 && value <= 8) << i;
    }
  }
}

// The pixels that Pillow's ImageOps.exif_transpose() makes of 0 1 2 / 3 4 5.
TEST(TurnUpright, EveryOrientation_IsPillows) {
  const std::vector<std::vector<int>> upright = {
      {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2}, {0, 3, 1, 4, 2, 5},
      {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (const int step : {1, 3, 4}) {
    const int64_t stride = 3 * step + 5;
    std::vector<uint8_t> stored(2 * stride, 99), memory;
    for (int i = 0; i < 6; ++i) {
      for (int c = 0; c < step; ++c) {
        stored[i / 3 * stride + i % 3 * step + c] = static_cast<uint8_t>(10 * i + c);
      }
    }
    for (int orientation = 2; orientation <= 8; ++orientation) {
      Pixels pixels{.data = stored.data(), .step = step, .stride = stride, .width = 3, .height = 2};
      turn_upright(orientation, &memory, &pixels);
      ASSERT_EQ(pixels.width, orientation < 5 ? 3 : 2);
      ASSERT_EQ(pixels.height, orientation < 5 ? 2 : 3);
      for (int i = 0; i < 6; ++i) {
        const uint8_t* pixel =
            pixels.data + i / pixels.width * pixels.stride + int64_t{i % pixels.width} * step;
        for (int c = 0; c < step; ++c) {
          EXPECT_EQ(pixel[c], 10 * upright[orientation - 2][i] + c) << orientation << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fleet::data
