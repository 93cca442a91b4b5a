// Resizes 8-bit images to the bits of Pillow: weights in fixed point, and values rounded to 8 bits
// after each of the two passes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/decode.h"
#include "data/exact_kernels.h"

namespace fleet::data {

// Reusable; use one per thread: it keeps its tables and row buffers.
//
// Equals Pillow's Image.resize() of the geometry's tap rectangle, then a crop, bit for bit. Of a
// JPEG that was decoded at reduced size, it resizes the reduced image in the same way.
class ExactResizer {
 public:
  // Uses the fastest instruction set of this CPU, or one of exact_instruction_sets() by name.
  explicit ExactResizer(const std::string& instruction_set = {});
  // As Resizer::run(); geometry.filter is not kFloatBilinear. Outputs outside the resized image
  // have the values geometry.fill.
  void run(const Pixels& pixels, const CropGeometry& geometry, int channels, const float* scale,
           const float* bias, float* out);

 private:
  struct Axis {
    int source = 0;          // size of the image that is resized, in (reduced) pixels
    int resized = 0;         // its size afterwards
    int before = 0;          // outputs before the resized image, which are filled
    int outputs = 0;         // outputs within it
    bool resizes = false;    // otherwise an output is the pixel at first + its number
    int first = 0, end = 0;  // the pixels of the decoded part that are read
    ExactWeights weights;
    // multiple: of weights for each output (ExactKernels::taps).
    void prepare(const CropGeometry& geometry, const Pixels& pixels, bool across, int multiple);
    void weigh(Filter filter, double start, double extent, int offset, int multiple);
    void keep_within(int low, int limit);
    void mirror();
  };
  void prepare(const Pixels& pixels, const CropGeometry& geometry);
  const uint8_t* source_row(const Pixels& pixels, int row, uint8_t* widened) const;
  void filter_row(const uint8_t* row, uint8_t* to) const;
  const uint8_t* row_for_combining(const Pixels& pixels, int row);
  const uint8_t* output_row(const Pixels& pixels, int y);
  void write_planes(const uint8_t* row, const CropGeometry& geometry, const float* scale,
                    const float* bias, float* to) const;

  const ExactKernels* kernels_;
  Axis x_, y_;
  std::vector<WeightBlock> packed_;  // x_'s weights, for the kernels
  int lanes_ = 0;                    // bytes of a pixel in rows: 1 or 4
  bool vertical_first_ = false;
  int made_ = 0;                           // rows before it are in the ring
  size_t row_bytes_ = 0;                   // the ring's
  std::vector<uint8_t> ring_;              // rows that the vertical pass reads
  std::vector<uint8_t> widened_, output_;  // a row before and after a pass
  std::vector<const uint8_t*> taps_;       // rows of the current output row
};

}  // namespace fleet::data
