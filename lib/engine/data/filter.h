// The filters that resize images, and in which order an exact resize applies them.
#pragma once

#include <string>
#include <vector>

namespace fleet::data {

enum class Filter {
  kFloatBilinear,  // Resizer's triangle in float; the others are ExactResizer's
  kBox,
  kBilinear,
  kHamming,
  kBicubic,
  kLanczos,
};

// Pillow 13.0 resizes rows first if that leaves less to do for a tall image; before, columns were
// always first. The results differ in a few pixels.
enum class PassOrder { kPillow13, kPillow12 };

// How a split resizes its images.
struct Interpolation {
  Filter filter = Filter::kFloatBilinear;
  bool random = false;  // bilinear or bicubic, drawn for each image
  PassOrder passes = PassOrder::kPillow13;
};

// The values of data.interpolation, in the order of Filter: "float_bilinear", "box"...
const std::vector<std::string>& filter_names();
// One of filter_names().
Filter filter_named(const std::string& name);

// Source pixels that count to each side of an output's centre, at scale 1.
double filter_support(Filter filter);
// The weight at a distance from the centre, as Pillow computes it.
double filter_weight(Filter filter, double distance);

}  // namespace fleet::data
