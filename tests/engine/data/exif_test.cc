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
         number(0x0112, 2) + number(type, 2) + number(1, 4) + number(value, 2) + number(0, 2);
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

TEST(ExifOrientation, WithoutAUsableNote_IsUpright) {
  EXPECT_EQ(orientation(""), 1);
  EXPECT_EQ(orientation("\x89PNG\r\n"), 1);
  EXPECT_EQ(orientation("\xff\xd8" + segment('\xe0', "JFIF") + "\xff\xdb"), 1);
  EXPECT_EQ(orientation("\xff\xd8" + segment('\xe1', "http://ns.adobe.com/xap/1.0/")), 1);
  for (const int value : {0, 9, 300}) EXPECT_EQ(orientation(jpeg(tiff(true, value))), 1) << value;
  EXPECT_EQ(orientation(jpeg(tiff(true, 6, /*type=*/4))), 1);
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

}  // namespace
}  // namespace fleet::data
