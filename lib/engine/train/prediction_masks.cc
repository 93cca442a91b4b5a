#include "train/prediction_masks.h"

#include <cmath>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/owned_file.h"
#include "data/encode_image.h"
#include "data/image_files.h"
#include "data/mask_maker.h"
#include "data/pipeline.h"
#include "models/predicted_pixels.h"

namespace fleet {
namespace {

// Where pixels of the image lie in the network's image along one axis; -1: outside of it.
std::vector<int> places(const data::CropGeometry& p, bool across) {
  const int source = across ? p.source_width : p.source_height;
  const int outputs = across ? p.out_width : p.out_height;
  const double start = across ? p.x : p.y, extent = across ? p.width : p.height;
  std::vector<int> all;
  for (int i = 0; i < source; ++i) {
    const auto at = static_cast<int>(std::floor((i + 0.5 - start) * outputs / extent));
    all.push_back(at >= 0 && at < outputs ? at : -1);
  }
  return all;
}

}  // namespace

std::string mask_folder(const Job& job) {
  return job.settings.given("predict.output") ? job.settings.text("predict.output") : "masks";
}

std::string mask_lines(const Job& job) { return mask_folder(job) + "/predictions.jsonl"; }

PredictionMasks::PredictionMasks(const Job& job, const data::ImageShape& image)
    : folder_(mask_folder(job)),
      upright_(job.data.text("exif") == "apply"),
      chain_(data::evaluation_chain(job.data, image)) {
  if (folder_ == "-") {
    throw Error(ErrorCode::kUsage, "the masks need a folder", "predict.output",
                "name one; the lines are in its predictions.jsonl");
  }
  make_directories(folder_);
}

std::string PredictionMasks::file_for(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  std::string name = stem + ".png";
  for (int number = 2; !names_.insert(name).second; ++number) {
    name = stem + "_" + std::to_string(number) + ".png";
  }
  return folder_ + "/" + name;
}

Json PredictionMasks::write(const std::string& path, std::span<const double> numbers) {
  std::vector<uint8_t> bytes;
  const data::ImageFiles files({{path, 0}});
  data::Decoder decoder(upright_);
  if (!decoder.open(files.read(0, bytes).bytes, 3)) {
    throw Error(ErrorCode::kIo, decoder.why(), path, "the image has changed: predict again");
  }
  const data::CropGeometry geometry =
      chain_.set_geometry(decoder.height(), decoder.width(), 0, [&] { return path; });
  const data::ImageShape& seen = chain_.image();
  const std::vector<uint8_t> classes = unpacked_pixels(numbers, size_t(seen.height) * seen.width);
  const std::vector<int> rows = places(geometry, false), columns = places(geometry, true);
  std::vector<uint8_t> mask(rows.size() * columns.size(), data::kUnlabelledPixel);
  for (size_t y = 0; y < rows.size(); ++y) {
    if (rows[y] < 0) continue;
    const uint8_t* from = classes.data() + int64_t{rows[y]} * seen.width;
    for (size_t x = 0; x < columns.size(); ++x) {
      if (columns[x] >= 0) mask[y * columns.size() + x] = from[columns[x]];
    }
  }
  const std::string file = file_for(path);
  write_file_atomically(file, data::encode_index_png(mask, decoder.height(), decoder.width()));
  Json members = Json::object();
  members["mask"] = file;
  return members;
}

}  // namespace fleet
