// Predictions of a class for each pixel.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/prediction_decoder.h"

namespace fleet {

// For the task segmentation: numbers hold the classes of several pixels each.
std::unique_ptr<PredictionDecoder> pixel_decoder(const TaskContext& context);
// The classes of `pixels` pixels, from the numbers of a row.
std::vector<uint8_t> unpacked_pixels(std::span<const double> numbers, size_t pixels);

}  // namespace fleet
