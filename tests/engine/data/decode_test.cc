#include "data/decode.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

using ::testing::HasSubstr;
using testing::jpeg_of;
using testing::picture;
using testing::png_of;

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The box [x, x+width) x [y, y+height), resized to out_width x out_height.
CropGeometry box(int height, int width, int x, int y, int box_width, int box_height, int out_width,
                 int out_height) {
  CropGeometry p{.source_height = height,
                 .source_width = width,
                 .out_height = out_height,
                 .out_width = out_width,
                 .x = double(x),
                 .y = double(y),
                 .width = double(box_width),
                 .height = double(box_height),
                 .tap_x = x,
                 .tap_y = y,
                 .tap_width = box_width,
                 .tap_height = box_height};
  return p;
}

CropGeometry whole(int height, int width) {
  return box(height, width, 0, 0, width, height, width, height);
}

// One byte of what was decoded, by its place in the (reduced) image.
int at(const Pixels& pixels, int y, int x, int c) {
  return pixels.data[(y - pixels.y) * pixels.stride + (x - pixels.x) * pixels.step + c];
}

// Largest difference between decoded pixels and `expected` (height x width x channels).
int difference(const Pixels& pixels, const std::vector<uint8_t>& expected, int width, int channels,
               int of_channels) {
  int most = 0;
  for (int y = pixels.y; y < pixels.y + pixels.height; ++y) {
    for (int x = pixels.x; x < pixels.x + pixels.width; ++x) {
      for (int c = 0; c < of_channels; ++c) {
        const int wanted = expected[(size_t(y) * width + x) * channels + (channels == 1 ? 0 : c)];
        most = std::max(most, std::abs(at(pixels, y, x, c) - wanted));
      }
    }
  }
  return most;
}

// A JPEG with an EXIF segment that says "rotated by 90 degrees" (orientation 6).
std::string rotated_by_exif(const std::string& jpeg) {
  // A TIFF header, and a directory with the one entry 0x112 (a short, 6).
  const std::string segment(
      "\xff\xe1\0\42Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0", 36);
  return jpeg.substr(0, 2) + segment + jpeg.substr(2);
}

// As torchvision's ImageFolder, which converts with Pillow and does not transpose.
TEST(DecodeJpeg, ExifOrientation_IsIgnored) {
  const std::string file = jpeg_of(picture(30, 50, 3), 30, 50, 3, 98);
  const std::string rotated = rotated_by_exif(file);
  Decoder decoder, other;
  Pixels wanted, got;
  ASSERT_TRUE(decoder.open(bytes_of(file), 3) && other.open(bytes_of(rotated), 3));
  EXPECT_EQ(other.height(), 30);
  EXPECT_EQ(other.width(), 50);
  ASSERT_TRUE(decoder.read(whole(30, 50), &wanted) && other.read(whole(30, 50), &got));
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 50; ++x) EXPECT_EQ(at(got, y, x, 1), at(wanted, y, x, 1));
  }
}

TEST(DecodeJpeg, Upright_FollowsTheExifOrientation) {
  const std::string file = jpeg_of(picture(30, 50, 3), 30, 50, 3, 98);
  const std::string rotated = rotated_by_exif(file);
  Decoder decoder, upright(true);
  Pixels stored, got;
  ASSERT_TRUE(decoder.open(bytes_of(file), 3) && decoder.read(whole(30, 50), &stored));
  for (const std::string& other : {rotated, file, rotated}) {
    ASSERT_TRUE(upright.open(bytes_of(other), 3));
    const bool turns = other != file;
    ASSERT_EQ(upright.height(), turns ? 50 : 30);
    ASSERT_EQ(upright.width(), turns ? 30 : 50);
    ASSERT_TRUE(upright.read(whole(upright.height(), upright.width()), &got));
    for (int y = 0; y < upright.height(); ++y) {
      for (int x = 0; x < upright.width(); ++x) {
        ASSERT_EQ(at(got, y, x, 1), turns ? at(stored, 29 - x, y, 1) : at(stored, y, x, 1));
      }
    }
  }
}

TEST(DecodeJpeg, WholeImage_IsThePicture) {
  const auto pixels = picture(75, 101, 3);
  const std::string file = jpeg_of(pixels, 75, 101, 3, 98);
  Decoder decoder;
  Pixels got;
  ASSERT_TRUE(decoder.open(bytes_of(file), 3));
  EXPECT_EQ(decoder.height(), 75);
  EXPECT_EQ(decoder.width(), 101);
  ASSERT_TRUE(decoder.read(whole(75, 101), &got)) << decoder.why();
  EXPECT_EQ(got.width, 101);
  EXPECT_EQ(got.height, 75);
  EXPECT_EQ(got.reduced, 1);
  EXPECT_LE(difference(got, pixels, 101, 3, 3), 12);
}

TEST(DecodeJpeg, Crop_IsPartOfTheWhole) {
  for (const bool progressive : {false, true}) {
    const std::string file = jpeg_of(picture(120, 160, 3), 120, 160, 3, 90, progressive);
    Decoder one, other;
    Pixels all, part;
    ASSERT_TRUE(one.open(bytes_of(file), 3));
    ASSERT_TRUE(one.read(whole(120, 160), &all));
    for (int x : {0, 17, 96}) {
      for (int y : {0, 31, 70}) {
        const CropGeometry p = box(120, 160, x, y, 50, 40, 50, 40);
        ASSERT_TRUE(other.open(bytes_of(file), 3));
        ASSERT_TRUE(other.read(p, &part));
        EXPECT_LE(part.x, x);
        EXPECT_LE(part.y, y);
        EXPECT_GE(part.x + part.width, x + 50);
        EXPECT_GE(part.y + part.height, y + 40);
        if (x + 50 + 32 < 160) {
          EXPECT_LT(part.width, 160);
        }
        EXPECT_LT(part.height, 120);
        for (int row = y; row < y + 40; ++row) {
          for (int column = x; column < x + 50; ++column) {
            for (int c = 0; c < 3; ++c) {
              const int off = std::abs(at(part, row, column, c) - at(all, row, column, c));
              // Chroma at the edge of what is decoded is interpolated without its neighbour
              // outside.
              const bool edge = column - part.x < 1 || part.x + part.width - column < 2;
              EXPECT_LE(off, edge ? 10 : 0) << "x " << column << " y " << row;
            }
          }
        }
      }
    }
  }
}

TEST(DecodeJpeg, LargeBox_IsDecodedReduced) {
  const std::string file = jpeg_of(picture(480, 640, 3), 480, 640, 3, 95);
  const struct {
    int out, reduced;
  } cases[] = {{241, 1}, {240, 2}, {121, 2}, {120, 4}, {60, 8}, {20, 8}};
  for (const auto& expected : cases) {
    Decoder decoder;
    Pixels got;
    ASSERT_TRUE(decoder.open(bytes_of(file), 3));
    ASSERT_TRUE(decoder.read(box(480, 640, 0, 0, 640, 480, expected.out, expected.out), &got));
    EXPECT_EQ(got.reduced, expected.reduced) << expected.out;
    EXPECT_EQ(got.height, 480 / expected.reduced);
  }
}

TEST(DecodeJpeg, GreyAndCmyk_BecomeWhatIsAskedFor) {
  const auto grey = picture(40, 30, 1);
  Decoder decoder;
  Pixels got;
  const std::string grey_file = jpeg_of(grey, 40, 30, 1, 98);
  ASSERT_TRUE(decoder.open(bytes_of(grey_file), 3));
  ASSERT_TRUE(decoder.read(whole(40, 30), &got));
  EXPECT_EQ(got.step, 4);
  EXPECT_LE(difference(got, grey, 30, 1, 3), 8);

  // No black ink, so the other inks' complements are the colours.
  const auto colours = picture(40, 30, 3);
  std::vector<uint8_t> inks, luma;
  for (size_t i = 0; i < colours.size(); i += 3) {
    inks.insert(inks.end(), {colours[i], colours[i + 1], colours[i + 2], 255});
    luma.push_back(static_cast<uint8_t>(0.299 * colours[i] + 0.587 * colours[i + 1] +
                                        0.114 * colours[i + 2] + 0.5));
  }
  const std::string cmyk_file = jpeg_of(inks, 40, 30, 4, 98);
  ASSERT_TRUE(decoder.open(bytes_of(cmyk_file), 3));
  ASSERT_TRUE(decoder.read(whole(40, 30), &got)) << decoder.why();
  EXPECT_LE(difference(got, colours, 30, 3, 3), 12);
  ASSERT_TRUE(decoder.open(bytes_of(cmyk_file), 1));
  ASSERT_TRUE(decoder.read(whole(40, 30), &got));
  EXPECT_EQ(got.step, 1);
  EXPECT_LE(difference(got, luma, 30, 1, 1), 12);

  const std::string colour_file = jpeg_of(colours, 40, 30, 3, 98);
  ASSERT_TRUE(decoder.open(bytes_of(colour_file), 1));
  ASSERT_TRUE(decoder.read(whole(40, 30), &got));
  EXPECT_EQ(got.step, 1);
  EXPECT_LE(difference(got, luma, 30, 1, 1), 12);
}

TEST(DecodePng, ColourGreyAndTransparent_AreExact) {
  Decoder decoder;
  Pixels got;
  for (const int channels : {1, 3, 4}) {
    const auto pixels = picture(21, 33, channels);
    const std::string file = png_of(pixels, 21, 33, channels);
    ASSERT_TRUE(decoder.open(bytes_of(file), 3)) << decoder.why();
    ASSERT_TRUE(decoder.read(whole(21, 33), &got)) << decoder.why();
    EXPECT_EQ(got.step, 4);
    EXPECT_EQ(difference(got, pixels, 33, channels, 3), 0) << channels << " channels";
  }
  const auto grey = picture(21, 33, 1);
  const std::string file = png_of(grey, 21, 33, 1);
  ASSERT_TRUE(decoder.open(bytes_of(file), 1));
  ASSERT_TRUE(decoder.read(whole(21, 33), &got));
  EXPECT_EQ(got.step, 1);
  EXPECT_EQ(difference(got, grey, 33, 1, 1), 0);
}

// As Pillow computes it, whatever gamma the file names.
TEST(DecodePng, GreyOfColours_DependsOnNoGamma) {
  constexpr size_t kHeader = 33;  // signature and IHDR
  const uint8_t gamma[] = {0x00, 0x00, 0x00, 0x04, 0x67, 0x41, 0x4d, 0x41,
                           0x00, 0x00, 0xb1, 0x8f, 0x0b, 0xfc, 0x61, 0x05};
  const std::vector<uint8_t> pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 200, 100, 50};
  const std::string plain = png_of(pixels, 1, 4, 3);
  std::string named = plain;
  named.insert(kHeader, reinterpret_cast<const char*>(gamma), sizeof gamma);
  for (const std::string& file : {plain, named}) {
    Decoder decoder;
    Pixels got;
    ASSERT_TRUE(decoder.open(bytes_of(file), 1)) << decoder.why();
    ASSERT_TRUE(decoder.read(whole(1, 4), &got)) << decoder.why();
    EXPECT_EQ(got.step, 1);
    EXPECT_THAT(std::vector<uint8_t>(got.data, got.data + 4),
                ::testing::ElementsAre(76, 150, 29, 124));
  }
}

TEST(DecodePng, SixteenBitsPaletteAndInterlace_BecomeEightBitColours) {
  const auto pixels = picture(9, 14, 3);
  Decoder decoder;
  Pixels got;
  const std::string deep = testing::deep_png_of(pixels, 9, 14);
  ASSERT_TRUE(decoder.open(bytes_of(deep), 3)) << decoder.why();
  ASSERT_TRUE(decoder.read(whole(9, 14), &got)) << decoder.why();
  EXPECT_EQ(difference(got, pixels, 14, 3, 3), 0);

  const std::vector<uint8_t> colours{10, 20, 30, 200, 100, 50, 0, 255, 128};
  std::vector<uint8_t> indices, expected;
  for (int i = 0; i < 9 * 14; ++i) {
    indices.push_back(i * 7 % 3);
    expected.insert(expected.end(), &colours[i * 7 % 3 * 3], &colours[i * 7 % 3 * 3] + 3);
  }
  const std::string palette = testing::palette_png_of(indices, colours, 9, 14);
  ASSERT_TRUE(decoder.open(bytes_of(palette), 3)) << decoder.why();
  ASSERT_TRUE(decoder.read(whole(9, 14), &got)) << decoder.why();
  EXPECT_EQ(difference(got, expected, 14, 3, 3), 0);
}

// Pillow's convert() makes nearly all of such a picture white.
TEST(DecodePng, SixteenBitGrey_KeepsItsHighBytes) {
  const auto pixels = picture(9, 14, 1);
  const std::string deep = testing::deep_png_of(pixels, 9, 14, 1);
  Decoder decoder;
  Pixels got;
  for (const int channels : {1, 3}) {
    ASSERT_TRUE(decoder.open(bytes_of(deep), channels)) << decoder.why();
    ASSERT_TRUE(decoder.read(whole(9, 14), &got)) << decoder.why();
    EXPECT_EQ(difference(got, pixels, 14, 1, channels), 0);
  }
}

TEST(Decoder, DamagedFiles_SayWhyAndLeaveTheDecoderUsable) {
  const std::string jpeg = testing::jpeg_picture(60, 80),
                    png = png_of(picture(60, 80, 3), 60, 80, 3);
  std::string broken_jpeg = jpeg, broken_png = png;
  for (size_t i = jpeg.size() / 2; i < jpeg.size() / 2 + 40; ++i) broken_jpeg[i] = '\xff';
  broken_png[png.size() / 2] ^= 0x55;
  const struct {
    std::string bytes, why;
  } cases[] = {{"", "empty"},
               {"hello", "it is not a JPEG"},
               {jpeg.substr(0, 20), ""},
               {jpeg.substr(0, jpeg.size() / 2), "Premature end of JPEG file"},
               {broken_jpeg, ""},
               {png.substr(0, 30), "the file ends early"},
               {png.substr(0, png.size() / 2), "the file ends early"},
               {broken_png, ""}};
  Decoder decoder;
  for (const auto& damaged : cases) {
    Pixels got;
    const bool good = decoder.open(bytes_of(damaged.bytes), 3) && decoder.read(whole(60, 80), &got);
    EXPECT_FALSE(good) << damaged.why;
    EXPECT_THAT(decoder.why(), HasSubstr(damaged.why));
    EXPECT_NE(decoder.why(), "");
    for (const std::string& file : {jpeg, png}) {
      ASSERT_TRUE(decoder.open(bytes_of(file), 3));
      EXPECT_TRUE(decoder.read(whole(60, 80), &got));
    }
  }
}

TEST(Decoder, HeaderThatClaimsTooMuch_IsDamaged) {
  std::string jpeg = testing::jpeg_picture(60, 80);
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (int i = 5; i < 9; ++i) jpeg[frame + i] = '\xf0';
  Decoder decoder;
  EXPECT_FALSE(decoder.open(bytes_of(jpeg), 3));
  EXPECT_THAT(decoder.why(), HasSubstr("header claims"));
}

TEST(Decoder, FormatThatIsNotRead_IsNamed) {
  const auto why = [](std::string bytes) {
    bytes.resize(std::max<size_t>(bytes.size(), 64));
    Decoder decoder;
    EXPECT_FALSE(decoder.open({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, 3));
    return decoder.why();
  };
  EXPECT_THAT(why(std::string(4, 0) + "ftypavif"), HasSubstr("but AVIF"));
  EXPECT_THAT(why("hello"), HasSubstr("it is not a JPEG, PNG"));
}

}  // namespace
}  // namespace fleet::data
