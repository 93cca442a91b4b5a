// Looks at the headers of a job's images before the first step: compares their sizes with the size
// that its network gets, and counts those that a camera has stored turned.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "data/augment.h"
#include "data/pipeline.h"

namespace fleet::data {

// Where read_sizes() ends, if it does not reach the last image before.
struct HeaderBounds {
  int64_t images = 1'000'000;
  std::chrono::milliseconds time{3000};
};

// The sizes in the headers of a split's images. Depends on the time that their file system takes:
// one rank must decide for all.
struct SizeReport {
  int64_t seen = 0;      // images whose size was read: all, or as many as in the time
  int64_t turned = 0;    // those with a note (EXIF) that they must be turned or mirrored
  int64_t others = 0;    // those that do not fit
  int64_t example = -1;  // one of these, by index, and its size
  int height = 0, width = 0;
  bool alike = true;  // whether all that do not fit have this size
};
// Images that cannot be read or decoded do not count. Sizes are as decoded: the orientation that a
// camera notes (EXIF) changes them if `upright`.
SizeReport read_sizes(const Source& source, const std::function<bool(int height, int width)>& fits,
                      const HeaderBounds& bounds = {}, bool upright = false);

// ImageSizeError naming an image and the settings to add if images of a split are not of the
// network's size and nothing resizes them. A warning if they are resized to the size of the first
// one; a line if images are turned. train: null if the job only evaluates; test: null without test
// data. usual: the size for which the model was made.
void check_sizes(const Settings& data, const InputPipeline* train, const InputPipeline* test,
                 const ImageShape& usual);

// The error of check_sizes() for training and test images whose first ones differ, so that there is
// no size for both.
[[noreturn]] void refuse_first_sizes(const Settings& data, const InputPipeline& train,
                                     const InputPipeline& test, const ImageShape& usual);

}  // namespace fleet::data
