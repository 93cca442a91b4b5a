#include "tests/engine/data/helpers.h"

#include <gtest/gtest.h>
#include <zlib.h>

// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <jpeglib.h>
#include <png.h>
// clang-format on

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace fleet::data::testing {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "fleet-data-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw Error(ErrorCode::kIo, "mkdtemp failed", name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<uint8_t> picture(int height, int width, int channels, int seed) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const double at = 0.05 * x * (1 + 0.3 * c) + 0.07 * y + seed * 1.7 + c;
        pixels.push_back(static_cast<uint8_t>(128 + 100 * std::sin(at)));
      }
    }
  }
  return pixels;
}

std::string jpeg_of(const std::vector<uint8_t>& pixels, int height, int width, int channels,
                    int quality, bool progressive) {
  return jpeg_with(pixels, height, width, channels, quality, [&](jpeg_compress_struct& info) {
    if (channels == 4) info.write_Adobe_marker = TRUE;
    if (progressive) jpeg_simple_progression(&info);
  });
}

std::string jpeg_with(const std::vector<uint8_t>& pixels, int height, int width, int channels,
                      int quality, const std::function<void(jpeg_compress_struct&)>& adjust) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  adjust(info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(&pixels[size_t{info.next_scanline} * width * channels]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return bytes;
}

std::string png_of(const std::vector<uint8_t>& pixels, int height, int width, int channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

namespace {

// Rows as libpng takes them.
std::string png_from_rows(std::vector<std::vector<uint8_t>> rows, int width, int depth, int type,
                          int interlace, const std::vector<uint8_t>& colours) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string bytes;
  png_set_write_fn(
      png, &bytes,
      [](png_structp to, png_bytep data, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(data), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, width, rows.size(), depth, type, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette;
  for (size_t i = 0; i + 2 < colours.size(); i += 3) {
    palette.push_back({colours[i], colours[i + 1], colours[i + 2]});
  }
  if (!palette.empty()) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(row.data());
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

}  // namespace

std::string deep_png_of(const std::vector<uint8_t>& pixels, int height, int width, int channels) {
  std::vector<std::vector<uint8_t>> rows(height);
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < channels * width; ++i) {
      const uint8_t high = pixels[size_t(y) * width * channels + i];
      rows[y].insert(rows[y].end(), {high, uint8_t(37 * i)});
    }
  }
  const int colours = channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
  return png_from_rows(rows, width, 16, colours, PNG_INTERLACE_ADAM7, {});
}

std::string palette_png_of(const std::vector<uint8_t>& indices, const std::vector<uint8_t>& colours,
                           int height, int width) {
  std::vector<std::vector<uint8_t>> rows(height);
  for (int y = 0; y < height; ++y) {
    rows[y].assign(indices.begin() + y * width, indices.begin() + (y + 1) * width);
  }
  return png_from_rows(rows, width, 8, PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE, colours);
}

std::string jpeg_picture(int height, int width, int seed) {
  return jpeg_of(picture(height, width, 3, seed), height, width, 3);
}

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string idx_of(const std::vector<int>& dims, const std::vector<uint8_t>& bytes) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const int dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(dim >> shift);
  }
  return out + std::string(bytes.begin(), bytes.end());
}

void write(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

Settings settings_of(const std::string& source, const std::string& json) {
  ConfigTree tree = ConfigTree::from_json(json, "job.json");
  return tree.validate(data_schema(source));
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

Copy copy_of(const Batch& batch) {
  Copy copy;
  copy.images.assign(batch.images.begin(), batch.images.end());
  copy.labels.assign(batch.labels.begin(), batch.labels.end());
  copy.samples.assign(batch.samples.begin(), batch.samples.end());
  copy.weights.assign(batch.weights.begin(), batch.weights.end());
  copy.other_labels.assign(batch.other_labels.begin(), batch.other_labels.end());
  copy.own_shares.assign(batch.own_shares.begin(), batch.own_shares.end());
  copy.keys.assign(batch.keys.begin(), batch.keys.end());
  copy.epoch = batch.epoch;
  copy.index = batch.index;
  copy.real = batch.real;
  return copy;
}

std::vector<Copy> rest_of(InputPipeline& pipeline) {
  std::vector<Copy> all;
  while (const Batch* batch = pipeline.next()) all.push_back(copy_of(*batch));
  return all;
}

}  // namespace fleet::data::testing
