// Files of predicted classes of pixels: a PNG for each image, at the image's own size.
#pragma once

#include <set>
#include <span>
#include <string>

#include "base/json.h"
#include "data/augment.h"
#include "data/decode.h"
#include "train/job.h"

namespace fleet {

// predict.output of a task that predicts masks: a folder; "masks" by default.
std::string mask_folder(const Job& job);
// The file of JSON lines in it.
std::string mask_lines(const Job& job);

// Not thread-safe.
class PredictionMasks {
 public:
  // image: what the network gets.
  PredictionMasks(const Job& job, const data::ImageShape& image);
  // Writes the mask of the image at `path`, whose pixels have these numbers in the network's image
  // (models/predicted_pixels.h): the nearest one for each pixel of the image, 255 where the network
  // does not see it. Returns the members of the image's line. kIo.
  Json write(const std::string& path, std::span<const double> numbers);

 private:
  std::string file_for(const std::string& path);

  const std::string folder_;
  const bool upright_;
  const data::AugmentChain chain_;
  std::set<std::string> names_;  // that are taken
};

}  // namespace fleet
