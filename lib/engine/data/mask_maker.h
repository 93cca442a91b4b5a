// Makes the mask of a batch from a file that has the class of each pixel of an image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/index_png.h"
#include "data/source.h"

namespace fleet::data {

// Pixels of a mask that count in no loss and no metric.
inline constexpr uint8_t kUnlabelledPixel = 255;
// The most classes: others are numbered up to 254.
inline constexpr int64_t kMostPixelClasses = 255;

// The source pixels of the outputs along one axis: the nearest, as Pillow's NEAREST; -1: outside of
// the image.
std::vector<int> nearest_pixels(const CropGeometry& geometry, bool across);

// Reusable; use one per thread.
class MaskMaker {
 public:
  // Writes the labels that the image of this geometry has to out, out_height x out_width, mirrored
  // if that says so. *labelled: the pixels that are not kUnlabelledPixel. Returns false, and the
  // reason in *why, if the file is damaged or of another size than the image. kUsage, naming the
  // file, unless its pixels are numbers of classes.
  bool make(const MaskFile& file, const CropGeometry& geometry, uint8_t* out, int64_t* labelled,
            std::string* why);

 private:
  IndexPng png_;
};

}  // namespace fleet::data
