#include "train/activation_pictures.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/owned_file.h"
#include "data/encode_image.h"
#include "train/job_task.h"

namespace fleet {
namespace {

using Kind = PredictionLayout::Kind;

[[noreturn]] void refuse(const std::string& key, const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, key, next);
}

uint8_t byte_of(double value) {
  return static_cast<uint8_t>(std::lrint(255 * std::clamp(value, 0.0, 1.0)));
}

}  // namespace

bool writes_maps(const Job& job) { return !job.settings.text("predict.cam").empty(); }

void check_maps(const Job& job, const PredictionLayout& layout) {
  const Settings& settings = job.settings;
  if (!writes_maps(job)) {
    for (const char* key : {"predict.cam_class", "predict.cam_style"}) {
      if (settings.given(key)) refuse(key, "no maps are written", "set predict.cam, or remove it");
    }
    return;
  }
  if (layout.kind != Kind::kClasses && layout.kind != Kind::kScores) {
    refuse("predict.cam", "the predictions are not classes: maps show where a class is seen",
           "remove it");
  }
  if (image_of_columns(expected_columns(job)).rank() != 3) {
    refuse("predict.cam", "only images have maps, and the data of this job are others",
           "remove it");
  }
  if (settings.text("predict.average") != "none") {
    refuse("predict.cam", "a map shows one view of an image, and predict.average has several",
           "remove one of them");
  }
  const int64_t wanted = settings.integer("predict.cam_class"), classes = classes_of(job);
  if (wanted >= classes) {
    refuse("predict.cam_class", "the model has " + std::to_string(classes) + " classes",
           "use a number from 0 to " + std::to_string(classes - 1));
  }
}

std::vector<std::string> map_names(const std::vector<std::string>& samples) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& sample : samples) {
    const std::string stem = std::filesystem::path(sample).stem().string();
    std::string name = stem;
    for (int64_t k = 2; !taken.insert(name).second; ++k) name = stem + "_" + std::to_string(k);
    names.push_back(name + ".png");
  }
  return names;
}

std::vector<uint8_t> overlay(std::span<const float> map, std::span<const float> image,
                             int64_t channels) {
  std::vector<uint8_t> pixels;
  const size_t plane = map.size();
  for (size_t i = 0; i < plane; ++i) {
    for (int c = 0; c < 3; ++c) {
      // The colours of MATLAB's "jet".
      const double colour = std::clamp(1.5 - std::abs(4.0 * map[i] - (3 - c)), 0.0, 1.0);
      const double own = image[channels == 3 ? c * plane + i : i];
      pixels.push_back(byte_of((colour + own) / 2));
    }
  }
  return pixels;
}

ActivationPictures::ActivationPictures(const Job& job, Device& device, int64_t batch,
                                       const Shape& image)
    : job_(job), image_(image), maps_(job, device, batch, image) {
  make_directories(job.settings.text("predict.cam"));
}

void ActivationPictures::write(const data::Batch& batch, const std::vector<Sample>& samples) {
  if (samples.empty()) return;
  const int64_t wanted = job_.settings.integer("predict.cam_class");
  std::vector<int64_t> classes(static_cast<size_t>(batch.size));  // of padding: any
  for (const Sample& sample : samples) {
    classes[sample.row] = wanted < 0 ? sample.predicted : wanted;
  }
  maps_.run(batch.column("image"), classes);
  for (const Sample& sample : samples) {
    write_file_atomically(job_.settings.text("predict.cam") + "/" + sample.name,
                          png(batch, sample.row));
  }
}

std::string ActivationPictures::png(const data::Batch& batch, int64_t row) const {
  const std::vector<float> map = maps_.map(row);
  const auto height = static_cast<int>(image_[1]), width = static_cast<int>(image_[2]);
  if (job_.settings.text("predict.cam_style") == "map") {
    std::vector<uint8_t> grey;
    for (const float value : map) grey.push_back(byte_of(value));
    return data::encode_png(grey, height, width, 1);
  }
  const auto own = static_cast<size_t>(image_.elements());
  const std::span<float> normalised = batch.images.subspan(static_cast<size_t>(row) * own, own);
  const std::vector<double>&mean = job_.data.numbers("mean"), &deviation = job_.data.numbers("std");
  std::vector<float> image(own);
  for (size_t i = 0; i < own; ++i) {
    const size_t c = i / map.size();
    image[i] = static_cast<float>(normalised[i] * deviation[deviation.size() > 1 ? c : 0] +
                                  mean[mean.size() > 1 ? c : 0]);
  }
  return data::encode_png(overlay(map, image, image_[0]), height, width, 3);
}

}  // namespace fleet
