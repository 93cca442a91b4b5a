// Formats that are decoded whole, against what Pillow reads from the same files
// (scripts/make_images.py).
#include <gmock/gmock.h>

#include <filesystem>
#include <random>

#include "base/file.h"
#include "data/decode.h"
#include "tests/engine/data/helpers.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

CropGeometry whole(int height, int width) {
  return {.source_height = height,
          .source_width = width,
          .out_height = height,
          .out_width = width,
          .width = static_cast<double>(width),
          .height = static_cast<double>(height),
          .tap_width = width,
          .tap_height = height};
}

// Planes next to each other; empty, and the reason, where the file is damaged.
std::vector<uint8_t> decode(const std::string& file, int channels, std::string* why = nullptr) {
  Decoder decoder;
  Pixels pixels;
  const bool good = decoder.open(bytes_of(file), channels) &&
                    decoder.read(whole(decoder.height(), decoder.width()), &pixels);
  if (why) *why = decoder.why();
  if (!good) return {};
  std::vector<uint8_t> all = {static_cast<uint8_t>(pixels.height),
                              static_cast<uint8_t>(pixels.width)};
  for (int y = 0; y < pixels.height; ++y) {
    for (int x = 0; x < pixels.width; ++x) {
      const uint8_t* pixel = pixels.data + y * pixels.stride + int64_t{x} * pixels.step;
      all.insert(all.end(), pixel, pixel + channels);
    }
  }
  return all;
}

std::vector<std::string> images() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(source_folder() + "/tests/golden/images")) {
    if (entry.path().extension() != ".png") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(DecodeFormats, AreBitEqualToPillow) {
  ASSERT_EQ(images().size(), 30u);
  for (const std::string& path : images()) {
    const std::string file = read_file(path);
    std::string why;
    const auto rgb = decode(file, 3, &why), grey = decode(file, 1, &why);
    EXPECT_FALSE(rgb.empty()) << path << ": " << why;
    EXPECT_EQ(rgb, decode(read_file(path + ".rgb.png"), 3)) << path;
    EXPECT_EQ(grey, decode(read_file(path + ".grey.png"), 1)) << path;
  }
}

TEST(DecodeFormats, Truncated_IsDamaged) {
  for (const std::string& path : images()) {
    const std::string file = read_file(path);
    for (size_t size = 0; size < file.size() / 3; size += 7) {
      std::string why;
      EXPECT_TRUE(decode(file.substr(0, size), 3, &why).empty()) << path << " cut at " << size;
      EXPECT_NE(why, "") << path << " cut at " << size;
    }
  }
}

TEST(DecodeFormats, Mutated_IsReadOrDamaged) {
  std::mt19937 random(11);
  int damaged = 0, read = 0;
  for (const std::string& path : images()) {
    const std::string file = read_file(path);
    for (int round = 0; round < 150; ++round) {
      std::string bytes = file;
      for (unsigned flips = 1 + random() % 3; flips > 0; --flips) {
        // Headers more often than the rest.
        const size_t reach = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size();
        bytes[random() % reach] = static_cast<char>(random());
      }
      std::string why;
      const bool empty = decode(bytes, 3, &why).empty();
      EXPECT_EQ(empty, !why.empty()) << path << ", round " << round << ": " << why;
      ++(empty ? damaged : read);
    }
  }
  EXPECT_GT(damaged, 100);
  EXPECT_GT(read, 100);
}

TEST(DecodeFormats, HeadersThatClaimTooMuch_AreDamaged) {
  const std::string folder = source_folder() + "/tests/golden/images/";
  std::string bmp = read_file(folder + "rgb.bmp"), gif = read_file(folder + "palette.gif"), why;
  for (const int at : {18, 19, 20}) bmp[at] = '\x7f';
  EXPECT_TRUE(decode(bmp, 3, &why).empty());
  EXPECT_THAT(why, HasSubstr("header claims"));
  for (const int at : {6, 7, 8, 9}) gif[at] = '\x7f';
  EXPECT_TRUE(decode(gif, 3, &why).empty());
  EXPECT_THAT(why, HasSubstr("header claims"));
}

// Little-endian, 2 x 1 grey pixels of 16 bits or floating-point ones of 32.
std::string deep_tiff(int bits, uint32_t first, uint32_t second) {
  std::string file("II*\0\x08\0\0\0", 8);
  const auto put = [&](uint64_t value, int size) {
    for (int i = 0; i < size; ++i) file += static_cast<char>(value >> 8 * i);
  };
  const uint32_t entries[][2] = {{256, 2},
                                 {257, 1},
                                 {258, static_cast<uint32_t>(bits)},
                                 {259, 1},
                                 {262, 1},
                                 {273, 0},
                                 {277, 1},
                                 {279, static_cast<uint32_t>(bits / 4)},
                                 {339, bits == 16 ? 1u : 3u}};
  const auto pixels = static_cast<uint32_t>(8 + 2 + std::size(entries) * 12 + 4);
  put(std::size(entries), 2);
  for (const auto& [tag, value] : entries) {
    put(tag, 2);
    put(4 /* LONG */, 2);
    put(1, 4);
    put(tag == 273 ? pixels : value, 4);
  }
  put(0, 4);
  put(first, bits / 8);
  put(second, bits / 8);
  return file;
}

TEST(DecodeFormats, DeepTiffs_LoseTheirLowBytesOrAreRefused) {
  std::string why;
  const std::vector<uint8_t> expected{1, 2, 0x12, 0xff};
  EXPECT_EQ(decode(deep_tiff(16, 0x12ff, 0xffff), 1, &why), expected) << why;
  EXPECT_TRUE(decode(deep_tiff(32, 0, 0x3f800000), 1, &why).empty());
  EXPECT_THAT(why, HasSubstr("of a kind that is not read: "));
}

TEST(DecodeFormats, OneDecoder_ReadsThemInTurn) {
  Decoder decoder;
  Pixels pixels;
  for (int round = 0; round < 2; ++round) {
    for (const std::string& path : images()) {
      const std::string file = read_file(path);
      ASSERT_TRUE(decoder.open(bytes_of(file), round == 0 ? 3 : 1)) << path;
      EXPECT_TRUE(decoder.read(whole(decoder.height(), decoder.width()), &pixels)) << path;
    }
  }
}

}  // namespace
}  // namespace fleet::data
