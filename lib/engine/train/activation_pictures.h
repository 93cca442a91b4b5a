// Class activation maps as PNG files (predict.cam).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "exec/executor.h"
#include "train/class_activation.h"
#include "train/job.h"
#include "train/prediction_file.h"

namespace fleet {

// Whether the job writes maps.
bool writes_maps(const Job& job);
// kUsage if keys of predict.cam contradict the predictions or each other.
void check_maps(const Job& job, const PredictionLayout& layout);

// The name of each sample's file: its own name with the ending .png; the second of equal names
// gets "_2", and so on. Depends on the samples alone.
std::vector<std::string> map_names(const std::vector<std::string>& samples);

// A picture of a map, height x width x 3: its colours, from blue (0) through green to red (1),
// over the image. image: 1 or 3 planes of values from 0 to 1.
std::vector<uint8_t> overlay(std::span<const float> map, std::span<const float> image,
                             int64_t channels);

// Not thread-safe. Ranks write the files of their own samples.
class ActivationPictures {
 public:
  // batch: of images of this shape. The job must pass check_maps().
  ActivationPictures(const Job& job, Device& device, int64_t batch, const Shape& image);

  Executor& executor() { return maps_.executor(); }
  struct Sample {
    int64_t row = 0;        // in the batch
    std::string name;       // the file's, of map_names()
    int64_t predicted = 0;  // its class
  };
  // kIo.
  void write(const data::Batch& batch, const std::vector<Sample>& samples);

 private:
  std::string png(const data::Batch& batch, int64_t row) const;

  const Job& job_;
  const Shape image_;
  ClassActivation maps_;
};

}  // namespace fleet
