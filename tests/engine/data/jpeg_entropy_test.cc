#include "data/jpeg_entropy.h"

#include <gtest/gtest.h>
#include <jerror.h>

#include <csetjmp>
#include <random>
#include <string>
#include <vector>

#include "data/decode.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

struct JpegEncoding {
  int width, height, channels, quality, across, down;  // across, down: sampling of the first one
  unsigned restart;
  bool fitted;  // its own Huffman codes
  bool noise;
};

std::string jpeg_by(const JpegEncoding& by, unsigned seed) {
  std::mt19937 random(seed);
  const auto size = static_cast<size_t>(by.width) * by.channels;
  std::vector<uint8_t> pixels(size * by.height);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i % size, y = i / size;
    pixels[i] = static_cast<uint8_t>(by.noise ? random() : x * 3 + y * 2 + random() % 16);
  }
  return testing::jpeg_with(pixels, by.height, by.width, by.channels, by.quality,
                            [&](jpeg_compress_struct& info) {
                              info.comp_info[0].h_samp_factor = by.across;
                              info.comp_info[0].v_samp_factor = by.down;
                              info.restart_interval = by.restart;
                              info.optimize_coding = by.fitted ? TRUE : FALSE;
                            });
}

// What libjpeg makes of a file, with JpegEntropy or alone.
class Decompression {
 public:
  explicit Decompression(JpegEntropy* entropy) : entropy_(entropy) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave;
    errors_.base.emit_message = [](j_common_ptr info, int level) {
      // Bytes between two parts of the data are no damage to either.
      if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA) leave(info);
    };
    jpeg_create_decompress(&info_);
  }
  ~Decompression() { jpeg_destroy_decompress(&info_); }

  // Rows [first, end); false if it is damaged.
  bool run(const std::string& file, int reduced, int first, int end, bool grey) {
    jpeg_abort_decompress(&info_);
    info_.client_data = nullptr;
    rows.clear();
    if (setjmp(errors_.escape)) return false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info_, TRUE);
    if (grey) info_.out_color_space = JCS_GRAYSCALE;
    info_.scale_num = 1;
    info_.scale_denom = reduced;
    jpeg_start_decompress(&info_);
    if (entropy_) entropy_->take_over(&info_);
    if (first > 0) jpeg_skip_scanlines(&info_, first);
    const size_t stride = size_t(info_.output_width) * info_.output_components;
    while (info_.output_scanline < std::min<JDIMENSION>(end, info_.output_height)) {
      rows.resize(rows.size() + stride);
      JSAMPROW row = rows.data() + rows.size() - stride;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    return true;
  }
  bool taken() const { return info_.client_data != nullptr; }
  int code() const { return errors_.base.msg_code; }
  std::vector<uint8_t> rows;

 private:
  struct Errors {
    jpeg_error_mgr base;
    std::jmp_buf escape;
  };
  [[noreturn]] static void leave(j_common_ptr info) {
    std::longjmp(reinterpret_cast<Errors*>(info->err)->escape, 1);
  }

  JpegEntropy* const entropy_;
  jpeg_decompress_struct info_{};
  Errors errors_{};
};

constexpr JpegEncoding kEncodings[] = {
    {97, 75, 3, 75, 2, 2, 0, false, false}, {64, 48, 3, 100, 1, 1, 0, true, true},
    {50, 131, 3, 95, 2, 1, 0, false, true}, {33, 40, 3, 90, 1, 2, 5, true, false},
    {80, 61, 3, 20, 2, 2, 1, true, true},   {61, 33, 1, 100, 1, 1, 0, true, true},
    {40, 40, 1, 60, 1, 1, 3, false, false}, {45, 37, 4, 95, 1, 1, 0, true, true},
    {47, 55, 4, 80, 2, 2, 2, true, false},  {300, 200, 3, 100, 1, 1, 0, true, true},
};

#if __has_include(<jpegint.h>)
constexpr bool kTakes = true;
#else
constexpr bool kTakes = false;
#endif

TEST(JpegEntropy, Pixels_AreLibjpegs) {
  JpegEntropy entropy;
  Decompression plain(nullptr), own(&entropy);
  unsigned seed = 0;
  for (const JpegEncoding& by : kEncodings) {
    const std::string file = jpeg_by(by, ++seed);
    for (const int reduced : {1, 2, 8}) {
      for (const int first : {0, 9}) {
        for (const int end : {12, 1000}) {
          const bool grey = by.channels == 3 && first > 0;
          const int from = by.height / reduced > first ? first : 0;
          ASSERT_TRUE(plain.run(file, reduced, from, end, grey));
          ASSERT_TRUE(own.run(file, reduced, from, end, grey)) << own.code();
          EXPECT_EQ(own.taken(), kTakes);
          EXPECT_EQ(own.rows, plain.rows) << "encoding " << seed << ", reduced " << reduced;
        }
      }
    }
  }
}

TEST(JpegEntropy, OtherCodings_AreLeftToLibjpeg) {
  JpegEntropy entropy;
  Decompression own(&entropy);
  std::string file = jpeg_by(kEncodings[0], 1);
  ASSERT_TRUE(own.run(file, 1, 0, 1000, false));
  const size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  file[frame + 1] = '\xc2';  // a progressive one, whose scan has no such parameters
  own.run(file, 1, 0, 1000, false);
  EXPECT_FALSE(own.taken());
}

// Files cut anywhere, and with bytes changed, inserted and removed: what both decode is equal, and
// libjpeg sees no damage that is not seen here, but for an end of the file behind the last pixel.
TEST(JpegEntropy, DamagedFiles_AreSeenOrDecodeAlike) {
  JpegEntropy entropy;
  Decompression plain(nullptr), own(&entropy);
  std::mt19937 random(7);
  int damaged = 0, ended = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const JpegEncoding& by = kEncodings[random() % 9];
    std::string file = jpeg_by(by, trial);
    const size_t scan = file.find("\xff\xda"), at = scan + random() % (file.size() - scan);
    switch (trial % 4) {
      case 0:
        file.resize(at);
        break;
      case 1:
        file[at] = static_cast<char>(random());
        break;
      case 2:
        file.insert(at, std::string(1 + random() % 3, char(random() % 255)));
        break;
      case 3:
        file.erase(at, 1 + random() % 4);
        break;
    }
    const bool good = plain.run(file, 1, 0, 1000, false);
    const bool own_good = own.run(file, 1, 0, 1000, false);
    if (own_good && good) {
      EXPECT_EQ(own.rows, plain.rows) << trial;
    } else if (own_good) {
      EXPECT_EQ(plain.code(), JWRN_JPEG_EOF) << trial;
      ++ended;
    } else {
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 400);
  EXPECT_LT(ended, 50);
}

// A photograph's last bytes may be missing; whatever ends within the needed rows is damage.
TEST(JpegEntropy, EndOfTheFile_IsDamageOnlyIfRowsNeedIt) {
  const std::string file = jpeg_by(kEncodings[2], 3);
  const std::string half = file.substr(0, file.size() / 2);
  JpegEntropy entropy;
  Decompression own(&entropy);
  EXPECT_TRUE(own.run(half, 1, 0, 30, false));
  EXPECT_FALSE(own.run(half, 1, 0, 131, false));
  EXPECT_EQ(own.code(), JWRN_JPEG_EOF);
  EXPECT_TRUE(own.run(file, 1, 0, 131, false));
}

}  // namespace
}  // namespace fleet::data
